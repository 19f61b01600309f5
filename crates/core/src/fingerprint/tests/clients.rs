//! What HTTP clients, browsers and parsers say. One group is one cause, and no two groups are.

use super::check;

#[test]
#[rustfmt::skip]
fn http_clients() {
    check(&[
        &[
            "Client error '403 Forbidden' for url 'https://shop.example/p/1'\nFor more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/403",
            "Client error '403 Forbidden' for url 'https://shop.example/search?q=a%20b'\nFor more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/403",
        ],
        &[
            "Client error '429 Too Many Requests' for url 'https://shop.example/p/7'\nFor more information check: https://developer.mozilla.org/en-US/docs/Web/HTTP/Status/429",
        ],
        &[
            "403, message='Forbidden', url=URL('https://shop.example/p/77')",
            "403, message='Forbidden', url='https://shop.example/'",
        ],
        &["429, message='Too Many Requests', url=URL('https://shop.example/p/77')"],
        &["HTTP Error 404: Not Found"],
        &["HTTP Error 503: Service Unavailable"],
        &[
            "Cannot connect to host shop.example:443 ssl:default [Connect call failed ('10.1.2.3', 443)]",
            "Cannot connect to host www.other.example:443 ssl:default [Connect call failed ('172.16.9.1', 443)]",
        ],
        &["Cannot connect to host shop.example:443 ssl:default [Name or service not known]"],
        &["[Errno 111] Connection refused"],
        &["[Errno 104] Connection reset by peer"],
        &["[WinError 10054] An existing connection was forcibly closed by the remote host"],
        &["<urlopen error [Errno -2] Name or service not known>"],
        &["<urlopen error [Errno 110] Connection timed out>"],
        &[
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1007)",
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1129)",
        ],
        &["[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1007)"],
        &["[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1007)"],
        &["connect ETIMEDOUT 10.0.0.1:443", "connect ETIMEDOUT 192.168.7.20:8443"],
        &["connect ECONNREFUSED ::1:3000", "connect ECONNREFUSED 127.0.0.1:3000"],
        &["read ECONNRESET"],
        &[
            "request to https://a.example/x failed, reason: connect ECONNREFUSED 1.2.3.4:443",
            "request to https://b.example/y?z=1 failed, reason: connect ECONNREFUSED 5.6.7.8:443",
        ],
        &["request to https://a.example/x failed, reason: unable to verify the first certificate"],
        &["Response code 404 (Not Found)"],
        &["Response code 502 (Bad Gateway)"],
        &["Timeout awaiting 'request' for 10000ms", "Timeout awaiting 'request' for 5000ms"],
        &["Timeout awaiting 'connect' for 10000ms"],
        &[
            "Get \"https://a.example/x\": dial tcp 1.2.3.4:443: connect: connection refused",
            "Get \"https://b.example/yy?q=2\": dial tcp 10.20.30.40:443: connect: connection refused",
        ],
        &["Get \"https://a.example/x\": dial tcp 1.2.3.4:443: i/o timeout"],
        &[
            "Get \"https://a.example/x\": dial tcp: lookup a.example on 127.0.0.53:53: no such host",
            "Get \"https://c.example/\": dial tcp: lookup c.example on 10.0.0.2:53: no such host",
        ],
        &["Get \"https://a.example/x\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"],
        &["Get \"https://a.example/x\": x509: certificate signed by unknown authority"],
        &["Get \"https://a.example/x\": net/http: TLS handshake timeout"],
        &["unexpected EOF"],
        &["curl: (6) Could not resolve host: shop.example", "curl: (6) Could not resolve host: api.other.example"],
        &[
            "curl: (28) Operation timed out after 30001 milliseconds with 0 bytes received",
            "curl: (28) Operation timed out after 15002 milliseconds with 1422 bytes received",
        ],
        &["curl: (28) Connection timed out after 10001 milliseconds"],
        &["curl: (56) Received HTTP code 407 from proxy after CONNECT"],
        &["curl: (56) Received HTTP code 502 from proxy after CONNECT"],
        &[
            "error sending request for url (https://a.example/x): operation timed out",
            "error sending request for url (https://b.example/y/2): operation timed out",
        ],
        &["error sending request for url (https://a.example/x): tcp connect error: Connection refused (os error 111)"],
        &[
            "error sending request for url (https://a.example/x): tcp connect error: Network is unreachable (os error 101)",
        ],
        &["HTTP status client error (404 Not Found) for url (https://a.example/x)"],
        &["HTTP status server error (500 Internal Server Error) for url (https://a.example/x)"],
        &[
            "HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: /x (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1007)')))",
            "HTTPSConnectionPool(host='b.example', port=443): Max retries exceeded with url: /y?z=2 (Caused by SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate (_ssl.c:1129)')))",
        ],
        &[
            "HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: /x (Caused by ResponseError('too many 503 error responses'))",
            "HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: /y (Caused by ResponseError('too many 503 error responses'))",
        ],
        &["HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: /x (Caused by ResponseError('too many 429 error responses'))"],
        &["HTTPSConnectionPool(host='a.example', port=443): Max retries exceeded with url: /x (Caused by ProxyError('Cannot connect to proxy.', RemoteDisconnected('Remote end closed connection without response')))"],
        &["Exceeded 30 redirects."],
        &["('Connection aborted.', BadStatusLine('HTTP/1.1 200 OK\\r'))"],
        &[
            "No connection adapters were found for 'ftp://x/y'",
            "No connection adapters were found for 'data:text/html;base64,AAAA'",
        ],
        &["('Received response with content-encoding: gzip, but failed to decode it.', error('Error -3 while decompressing data: incorrect header check'))"],
        &["Server disconnected"],
        &["Response payload is not completed"],
        &[
            "Connection timeout to host https://a.example/p/12",
            "Connection timeout to host http://b.example/zz",
        ],
        &[
            "0, message='Attempt to decode JSON with unexpected mimetype: text/html; charset=utf-8', url=URL('https://a.example/api')",
            "0, message='Attempt to decode JSON with unexpected mimetype: text/html; charset=utf-8', url=URL('https://b.example/v2/x?y')",
        ],
        &["Cannot connect to host a.example:443 ssl:True [SSLCertVerificationError: (1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:992)')]"],
        &["Couldn't bind: 24: Too many open files."],
        &[
            "DNS lookup failed: no results for hostname lookup: a.example.",
            "DNS lookup failed: no results for hostname lookup: www.b.example.",
        ],
        &["Connection was refused by other side: 111: Connection refused."],
        &["Connection to the other side was lost in a non-clean fashion: Connection lost."],
        &["[<twisted.python.failure.Failure twisted.internet.error.ConnectionLost: Connection to the other side was lost in a non-clean fashion: Connection lost.>]"],
        &["[<twisted.python.failure.Failure OpenSSL.SSL.Error: [('SSL routines', '', 'unexpected eof while reading')]>]"],
        &[
            "Ignoring response <403 https://a.example/x>: HTTP status code is not handled or not allowed",
            "Ignoring response <403 https://a.example/y?z>: HTTP status code is not handled or not allowed",
        ],
        &[
            "Gave up retrying <GET https://a.example/x> (failed 3 times): 503 Service Unavailable",
            "Gave up retrying <GET https://b.example/> (failed 5 times): 503 Service Unavailable",
        ],
        &["Gave up retrying <GET https://a.example/x> (failed 3 times): 429 Unknown Status"],
        &["Request failed with status code 500"],
        &["Request failed with status code 404"],
        &[
            "maxContentLength size of 2000 exceeded",
            "maxContentLength size of 100000 exceeded",
        ],
        &[
            "getaddrinfo ENOTFOUND a.example",
            "getaddrinfo ENOTFOUND api.b.example",
        ],
        &["getaddrinfo EAI_AGAIN a.example"],
        &["Client network socket disconnected before secure TLS connection was established"],
        &["unable to get local issuer certificate"],
        &["self signed certificate in certificate chain"],
        &[
            "ENOENT: no such file or directory, open '/data/a/1.json'",
            "ENOENT: no such file or directory, open '/srv/x/yy.json'",
        ],
        &["EACCES: permission denied, open '/data/a/1.json'"],
        &["ENOSPC: no space left on device, write"],
        &["write EPIPE"],
        &["Cannot find module './lib/x'\nRequire stack:\n- /app/a.js\n- /app/b.js"],
        &["foo.map is not a function"],
        &["items is not iterable"],
        &[
            "Unexpected token u in JSON at position 0",
            "Unexpected token u in JSON at position 7",
        ],
        &["Maximum call stack size exceeded"],
        &[
            "Invalid URL: /p/12",
            "Invalid URL: foo",
        ],
    ]);
}

#[test]
#[rustfmt::skip]
fn browsers() {
    check(&[
        &["net::ERR_CONNECTION_RESET at https://a.example/x", "net::ERR_CONNECTION_RESET at https://b.example/y?z"],
        &["net::ERR_HTTP2_PROTOCOL_ERROR at https://a.example/x"],
        &["net::ERR_CERT_DATE_INVALID at https://a.example/x"],
        &["Navigation timeout of 30000 ms exceeded", "Navigation timeout of 60000 ms exceeded"],
        &[
            "Waiting for selector `.price` failed: Waiting failed: 30000ms exceeded",
            "Waiting for selector `.price` failed: Waiting failed: 5000ms exceeded",
        ],
        &["Waiting for selector `h1.title` failed: Waiting failed: 30000ms exceeded"],
        &["Waiting for selector `h2.title` failed: Waiting failed: 30000ms exceeded"],
        &["SelectorNotFound: h1.title::text (field name)"],
        &["SelectorNotFound: h2.title::text (field name)"],
        &["SelectorNotFound: .col-2 > .price::text (field price)"],
        &["SelectorNotFound: .col-3 > .price::text (field price)"],
        &["SelectorNotFound: tr:nth-child(2) td::text (field price)"],
        &["SelectorNotFound: tr:nth-child(3) td::text (field price)"],
        &["SelectorNotFound: .price::text (field price1)"],
        &["SelectorNotFound: .price::text (field price2)"],
        &["KeyError: 'price1'"],
        &["KeyError: 'price2'"],
        &["row1 is not defined"],
        &["row2 is not defined"],
        &["TypeError: fetch failed\n[cause]: Error: connect ECONNREFUSED 10.0.0.1:1", "TypeError: fetch failed\n[cause]: Error: connect ECONNREFUSED 10.0.0.2:9"],
        &["TypeError: fetch failed\n[cause]: HeadersTimeoutError: Headers Timeout Error"],
        &["No node found for selector: #buy"],
        &["Protocol error (Page.navigate): Session closed. Most likely the page has been closed."],
        &["Protocol error (Runtime.callFunctionOn): Target closed."],
        &[
            "no such element: Unable to locate element: {\"method\":\"css selector\",\"selector\":\".price\"}\n  (Session info: chrome=120.0.6099.109)",
            "no such element: Unable to locate element: {\"method\":\"css selector\",\"selector\":\".price\"}\n  (Session info: chrome=121.0.6167.85)",
        ],
        &[
            "no such element: Unable to locate element: {\"method\":\"css selector\",\"selector\":\".title\"}\n  (Session info: chrome=120.0.6099.109)",
        ],
        &["stale element reference: stale element not found\n  (Session info: chrome=120.0.6099.109)"],
        &[
            "session not created: This version of ChromeDriver only supports Chrome version 114\nCurrent browser version is 120.0.6099.109",
            "session not created: This version of ChromeDriver only supports Chrome version 113\nCurrent browser version is 119.0.1.2",
        ],
        &[
            "Message: timeout: Timed out receiving message from renderer: 299.999",
            "Message: timeout: Timed out receiving message from renderer: 10.000",
        ],
        &["page.goto: Navigation failed because page crashed!"],
        &[
            "page.goto: net::ERR_ABORTED at https://a.example/x.pdf\nCall log:\n  - navigating to \"https://a.example/x.pdf\", waiting until \"load\"\n",
            "page.goto: net::ERR_ABORTED at https://a.example/y.pdf\nCall log:\n  - navigating to \"https://a.example/y.pdf\", waiting until \"load\"\n",
        ],
        &[
            "locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for getByRole('button', { name: 'Accept' })\n",
            "locator.click: Timeout 5000ms exceeded.\nCall log:\n  - waiting for getByRole('button', { name: 'Accept' })\n    - locator resolved to <button>..</button>\n",
        ],
        &["locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for getByRole('button', { name: 'Next' })\n"],
        &["locator.fill: Timeout 30000ms exceeded.\nCall log:\n  - waiting for locator('#search')\n"],
        &[
            "page.waitForResponse: Timeout 30000ms exceeded while waiting for event \"response\"",
            "page.waitForResponse: Timeout 9000ms exceeded while waiting for event \"response\"",
        ],
        &[
            "Page.goto: Timeout 30000ms exceeded.\n=========================== logs ===========================\nnavigating to \"https://a.example/x\", waiting until \"load\"\n============================================================",
            "Page.goto: Timeout 60000ms exceeded.\n=========================== logs ===========================\nnavigating to \"https://b.example/y\", waiting until \"load\"\n============================================================",
        ],
        &[
            "browserType.launch: Failed to launch: Error: spawn /home/a/chrome ENOENT",
            "browserType.launch: Failed to launch: Error: spawn /root/.cache/chrome-120/chrome ENOENT",
        ],
        &[
            "Message: element click intercepted: Element <a href=\"/x\" class=\"b\">...</a> is not clickable at point (512, 300). Other element would receive the click: <div class=\"o\"></div>\n  (Session info: chrome=120.0.1.2)",
            "Message: element click intercepted: Element <a href=\"/yyy\" class=\"b\">...</a> is not clickable at point (12, 30). Other element would receive the click: <div id=\"z\"></div>\n  (Session info: chrome=121.0.1.2)",
        ],
        &["Message: unknown error: net::ERR_NAME_NOT_RESOLVED\n  (Session info: chrome=120.0.1.2)"],
        &["Message: no such window: target window already closed\nfrom unknown error: web view not found\n  (Session info: chrome=120.0.1.2)"],
        &["Message: invalid session id"],
    ]);
}

#[test]
#[rustfmt::skip]
fn parsers_and_programs() {
    check(&[
        &["'NoneType' object has no attribute 'get_text'"],
        &["'NoneType' object has no attribute 'find'"],
        &["'NoneType' object is not subscriptable"],
        &["'float' object has no attribute 'get_text'"],
        &["list index out of range"],
        &["'price'"],
        &["'offers'"],
        &["string indices must be integers, not 'str'"],
        &["Expecting value: line 1 column 1 (char 0)", "Expecting value: line 4 column 17 (char 211)"],
        &["Extra data: line 1 column 5 (char 4)", "Extra data: line 2 column 1 (char 91)"],
        &[
            "Unexpected token '<', \"<!DOCTYPE \"... is not valid JSON",
            "Unexpected token '<', \"<html>\n<h\"... is not valid JSON",
        ],
        &["Unexpected end of JSON input"],
        &["Cannot read properties of undefined (reading 'price')"],
        &["Cannot read properties of undefined (reading 'title')"],
        &["Cannot read properties of null (reading 'price')"],
        &[
            "invalid literal for int() with base 10: '1.299,00'",
            "invalid literal for int() with base 10: 'ab 12 €'",
            "invalid literal for int() with base 10: ''",
        ],
        &["could not convert string to float: 'sold out'", "could not convert string to float: '12,50 €'"],
        &["Invalid isoformat string: '12. Mai 2024'", "Invalid isoformat string: 'yesterday'"],
        &[
            "'utf-8' codec can't decode byte 0xe9 in position 11: invalid continuation byte",
            "'utf-8' codec can't decode byte 0xfc in position 2291: invalid continuation byte",
        ],
        &["'utf-8' codec can't decode byte 0x8b in position 1: invalid start byte"],
        &["'ascii' codec can't decode byte 0xc3 in position 8: ordinal not in range(128)"],
        &["missing field `price` at line 1 column 234", "missing field `price` at line 9 column 2"],
        &["missing field `sku` at line 1 column 234"],
        &[
            "invalid type: string \"12,5\", expected f64 at line 1 column 20",
            "invalid type: string \"sold out\", expected f64 at line 8 column 3",
        ],
        &["KeyError: 'seller'"],
        &["undefined method `text' for nil:NilClass"],
        &["undefined method `attr' for nil:NilClass"],
        &["No module named 'lxml'"],
        &["No module named 'playwright'"],
        &["name 'prices' is not defined"],
        &["parse() got an unexpected keyword argument 'cb_kwargs'"],
        &["Object reference not set to an instance of an object."],
        &["Index 3 out of bounds for length 2", "Index 0 out of bounds for length 0"],
        &["For input string: \"12,5\"", "For input string: \"n/a\""],
        &["invalid character '<' looking for beginning of value"],
        &["json: cannot unmarshal string into Go struct field Product.price of type float64"],
        &["json: cannot unmarshal string into Go struct field Product.stock of type int"],
        &["division by zero"],
        &["maximum recursion depth exceeded"],
        &["unsupported operand type(s) for +: 'int' and 'str'"],
        &["unsupported operand type(s) for +: 'NoneType' and 'str'"],
        &["argument of type 'NoneType' is not iterable"],
        &["expected string or bytes-like object, got 'NoneType'"],
        &[
            "not enough values to unpack (expected 2, got 1)",
            "not enough values to unpack (expected 2, got 0)",
        ],
        &[
            "time data 'gestern' does not match format '%Y-%m-%d'",
            "time data '1 Mar' does not match format '%Y-%m-%d'",
        ],
        &["time data 'gestern' does not match format '%H:%M'"],
        &[
            "[Errno 28] No space left on device: '/data/x/1.gz'",
            "[Errno 28] No space left on device: '/data/y/2.gz'",
        ],
        &["[Errno 13] Permission denied: '/data/x/1.gz'"],
        &[
            "cannot import name 'Foo' from 'bar' (/app/bar/__init__.py)",
            "cannot import name 'Foo' from 'bar' (/srv/x/bar/__init__.py)",
        ],
        &["[<class 'decimal.ConversionSyntax'>]"],
        &[
            "cannot identify image file <_io.BytesIO object at 0x7f1122334455>",
            "cannot identify image file <_io.BytesIO object at 0x7f0000000010>",
        ],
        &[
            "Command '['ffmpeg', '-i', '/tmp/a1.mp4']' timed out after 30 seconds",
            "Command '['ffmpeg', '-i', '/tmp/zz.mp4', '-y']' timed out after 600 seconds",
        ],
        &[
            "Command '['ffmpeg', '-i', '/tmp/a1.mp4']' died with <Signals.SIGKILL: 9>.",
            "Command '['ffmpeg', '-y', '-i', '/tmp/b.mp4']' died with <Signals.SIGKILL: 9>.",
        ],
        &["Command '['ffmpeg', '-i', '/tmp/a1.mp4']' died with <Signals.SIGSEGV: 11>."],
        &["Command '['wget', '-i', '/tmp/a1.mp4']' returned non-zero exit status 4."],
        &[
            "Task timed out after 30.03 seconds",
            "Task timed out after 900.10 seconds",
        ],
        &[
            "RequestId: 0a1b2c3d-1111-2222-3333-444455556666 Error: Runtime exited with error: signal: killed",
            "RequestId: 99999999-aaaa-bbbb-cccc-ddddeeeeffff Error: Runtime exited with error: signal: killed",
        ],
        &[
            "Expected selector, got <DELIM '>' at 0>",
            "Expected selector, got <DELIM '>' at 12>",
        ],
        &[
            "Start tag expected, '<' not found, line 1, column 1 (<string>, line 1)",
            "Start tag expected, '<' not found, line 3, column 1 (<string>, line 3)",
        ],
        &["Document is empty, line 1, column 1 (<string>, line 1)"],
        &[
            "Premature end of data in tag urlset line 2, line 812, column 40 (<string>, line 812)",
            "Premature end of data in tag urlset line 2, line 9, column 4 (<string>, line 9)",
        ],
        &[
            "PCDATA invalid Char value 8, line 14, column 33 (<string>, line 14)",
            "PCDATA invalid Char value 31, line 1, column 3 (<string>, line 1)",
        ],
        &["Couldn't find a tree builder with the features you requested: lxml. Do you need to install a parser library?"],
        &[
            "java.lang.IllegalStateException: Expected BEGIN_OBJECT but was STRING at line 1 column 1 path $",
            "java.lang.IllegalStateException: Expected BEGIN_OBJECT but was STRING at line 4 column 12 path $",
        ],
        &["Unrecognized field \"foo\" (class com.acme.Product), not marked as ignorable (3 known properties: \"sku\", \"price\", \"title\"])"],
        &["Unrecognized field \"bar\" (class com.acme.Product), not marked as ignorable (3 known properties: \"sku\", \"price\", \"title\"])"],
        &["Connection pool shut down"],
        &[
            "HikariPool-1 - Connection is not available, request timed out after 30001ms.",
            "HikariPool-2 - Connection is not available, request timed out after 30005ms.",
        ],
        &["The SSL connection could not be established, see inner exception."],
        &["A task was canceled."],
        &[
            "The request was canceled due to the configured HttpClient.Timeout of 100 seconds elapsing.",
            "The request was canceled due to the configured HttpClient.Timeout of 30 seconds elapsing.",
        ],
        &["Response status code does not indicate success: 403 (Forbidden)."],
        &["Response status code does not indicate success: 502 (Bad Gateway)."],
        &[
            "No such host is known. (a.example:443)",
            "No such host is known. (b.example:443)",
        ],
        &[
            "Failed to open TCP connection to a.example:443 (getaddrinfo: Name or service not known)",
            "Failed to open TCP connection to b.example:443 (getaddrinfo: Name or service not known)",
        ],
        &["Failed to open TCP connection to a.example:443 (Connection refused - connect(2) for \"a.example\" port 443)"],
        &["Net::ReadTimeout with #<TCPSocket:(closed)>"],
        &["Net::OpenTimeout"],
        &[
            "cURL error 28: Operation timed out after 10001 milliseconds with 0 out of 0 bytes received (see https://curl.haxx.se/libcurl/c/libcurl-errors.html) for https://a.example/x",
            "cURL error 28: Operation timed out after 20000 milliseconds with 17 out of 1200 bytes received (see https://curl.haxx.se/libcurl/c/libcurl-errors.html) for https://b.example/y",
        ],
        &["cURL error 6: Could not resolve host: a.example (see https://curl.haxx.se/libcurl/c/libcurl-errors.html) for https://a.example/x"],
        &["Undefined array key \"price\""],
        &["Undefined array key \"sku\""],
        &["Call to a member function text() on null"],
        &[
            "Allowed memory size of 134217728 bytes exhausted (tried to allocate 20480 bytes)",
            "Allowed memory size of 268435456 bytes exhausted (tried to allocate 4096 bytes)",
        ],
        &["called `Option::unwrap()` on a `None` value"],
        &[
            "index out of bounds: the len is 3 but the index is 7",
            "index out of bounds: the len is 0 but the index is 0",
        ],
        &[
            "runtime error: index out of range [3] with length 3",
            "runtime error: index out of range [0] with length 0",
        ],
        &["runtime error: invalid memory address or nil pointer dereference"],
        &[
            "strconv.ParseFloat: parsing \"12,5\": invalid syntax",
            "strconv.ParseFloat: parsing \"n/a\": invalid syntax",
        ],
        &["strconv.Atoi: parsing \"12,5\": invalid syntax"],
        &[
            "open /data/a.json: no such file or directory",
            "open /srv/b/c.json: no such file or directory",
        ],
        &["open /data/a.json: too many open files"],
    ]);
}
