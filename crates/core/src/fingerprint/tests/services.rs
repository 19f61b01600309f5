//! What databases, queues, clouds and providers say. One group is one cause, and no two groups are.

use super::check;

#[test]
#[rustfmt::skip]
fn stores_and_services() {
    check(&[
        &[
            "(1062, \"Duplicate entry 'B0X1' for key 'products.sku'\")",
            "(1062, \"Duplicate entry 'KX-99' for key 'products.sku'\")",
        ],
        &["(1062, \"Duplicate entry 'B0X1' for key 'products.url_hash'\")"],
        &["(2006, 'MySQL server has gone away')"],
        &["(2013, 'Lost connection to MySQL server during query')"],
        &[
            "ERROR 1045 (28000): Access denied for user 'app'@'10.0.0.7' (using password: YES)",
            "ERROR 1045 (28000): Access denied for user 'bot'@'10.0.0.9' (using password: YES)",
        ],
        &["SQLSTATE[23000]: Integrity constraint violation: 1062 Duplicate entry 'x1' for key 'sku'"],
        &["SQLSTATE[HY000] [2002] Connection refused"],
        &["UNIQUE constraint failed: products.sku"],
        &["UNIQUE constraint failed: products.url"],
        &["database is locked"],
        &["no such table: products"],
        &[
            "relation \"products\" does not exist\nLINE 1: SELECT * FROM products WHERE id = 5\n                      ^",
            "relation \"products\" does not exist\nLINE 1: INSERT INTO products VALUES (7)\n                      ^",
        ],
        &["FATAL:  remaining connection slots are reserved for non-replication superuser connections"],
        &[
            "Error 111 connecting to redis:6379. Connection refused.",
            "Error 111 connecting to 10.0.0.5:6379. Connection refused.",
        ],
        &["MOVED 3999 127.0.0.1:6381", "MOVED 12182 10.0.0.8:6379"],
        &["OOM command not allowed when used memory > 'maxmemory'."],
        &["An error occurred (NoSuchKey) when calling the GetObject operation: The specified key does not exist."],
        &["An error occurred (AccessDenied) when calling the GetObject operation: Access Denied"],
        &[
            "An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 4): Too many requests",
            "An error occurred (ThrottlingException) when calling the InvokeModel operation (reached max retries: 2): Too many requests",
        ],
        &[
            "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp 10.1.1.1:50051: connect: connection refused\"",
            "rpc error: code = Unavailable desc = connection error: desc = \"transport: Error while dialing: dial tcp 10.9.1.7:50051: connect: connection refused\"",
        ],
        &["rpc error: code = DeadlineExceeded desc = context deadline exceeded"],
        &[
            "KafkaTimeoutError: Failed to update metadata after 60.0 secs.",
            "KafkaTimeoutError: Failed to update metadata after 30.0 secs.",
        ],
        &["ERROR_KEY_DOES_NOT_EXIST"],
        &["ERROR_ZERO_BALANCE"],
        &[
            "{\"errorId\":12,\"errorCode\":\"ERROR_CAPTCHA_UNSOLVABLE\",\"errorDescription\":\"Workers could not solve the Captcha\"}",
        ],
        &["{\"errorId\":2,\"errorCode\":\"ERROR_NO_SLOT_AVAILABLE\",\"errorDescription\":\"No idle workers\"}"],
        &["exit status 1"],
        &["exit status 2"],
        &["signal: killed"],
        &["process exited with code 137", "process exited with code 137"],
        &["process exited with code 139"],
        &[
            "Task scraper.fetch[7f1c8e9a-8f0b-4f5e-9b63-0a7b8f1b2c3d] raised unexpected: TimeoutError()",
            "Task scraper.fetch[00112233-4455-6677-8899-aabbccddeeff] raised unexpected: TimeoutError()",
        ],
        &["java.net.SocketTimeoutException: Read timed out"],
        &["java.net.SocketTimeoutException: connect timed out"],
        &["Failed to connect to shop.example/93.184.216.34:443", "Failed to connect to www.b.example/10.2.3.4:443"],
        &[
            "Unable to resolve host \"a.example\": No address associated with hostname",
            "Unable to resolve host \"b.example\": No address associated with hostname",
        ],
        &["null value in column \"title\" of relation \"products\" violates not-null constraint\nDETAIL:  Failing row contains (1, null)."],
        &[
            "insert or update on table \"offers\" violates foreign key constraint \"offers_product_id_fkey\"\nDETAIL:  Key (product_id)=(991) is not present in table \"products\".",
            "insert or update on table \"offers\" violates foreign key constraint \"offers_product_id_fkey\"\nDETAIL:  Key (product_id)=(12) is not present in table \"products\".",
        ],
        &["value too long for type character varying(255)"],
        &["invalid byte sequence for encoding \"UTF8\": 0x00"],
        &["canceling statement due to statement timeout"],
        &["server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally\n\tbefore or while processing the request."],
        &[
            "connection to server at \"db.internal\" (10.0.0.3), port 5432 failed: FATAL:  password authentication failed for user \"app\"",
            "connection to server at \"db2.internal\" (10.0.0.4), port 5433 failed: FATAL:  password authentication failed for user \"bot\"",
        ],
        &["connection to server at \"10.0.0.3\", port 5432 failed: timeout expired"],
        &[
            "QueuePool limit of size 5 overflow 10 reached, connection timed out, timeout 30.00 (Background on this error at: https://sqlalche.me/e/20/3o7r)",
            "QueuePool limit of size 20 overflow 10 reached, connection timed out, timeout 10.00 (Background on this error at: https://sqlalche.me/e/14/3o7r)",
        ],
        &[
            "(psycopg2.errors.UniqueViolation) duplicate key value violates unique constraint \"u_sku\"\nDETAIL:  Key (sku)=(1) already exists.\n\n[SQL: INSERT INTO p VALUES (%(a)s)]\n[parameters: {'a': 1}]",
            "(psycopg2.errors.UniqueViolation) duplicate key value violates unique constraint \"u_sku\"\nDETAIL:  Key (sku)=(B0) already exists.\n\n[SQL: INSERT INTO p VALUES (%(a)s), (%(b)s)]\n[parameters: {'a': 1, 'b': 4}]",
        ],
        &[
            "E11000 duplicate key error collection: shop.products index: sku_1 dup key: { sku: \"B01\" }",
            "E11000 duplicate key error collection: shop.products index: sku_1 dup key: { sku: \"KX-7\" }",
        ],
        &["E11000 duplicate key error collection: shop.products index: url_1 dup key: { url: \"https://x/\" }"],
        &[
            "connection <monitor> to 10.0.0.4:27017 closed",
            "connection <monitor> to 10.3.0.4:27017 closed",
        ],
        &["Deadlock found when trying to get lock; try restarting transaction"],
        &[
            "Data too long for column 'title' at row 1",
            "Data too long for column 'title' at row 12",
        ],
        &[
            "Incorrect string value: '\\xF0\\x9F\\x98\\x80' for column 'title' at row 1",
            "Incorrect string value: '\\xF0\\x9F\\x91\\x8D...' for column 'title' at row 7",
        ],
        &["Unknown column 'pricee' in 'field list'"],
        &["Table 'shop.products' doesn't exist"],
        &["ORA-00001: unique constraint (SHOP.SKU_UK) violated"],
        &["ORA-12170: TNS:Connect timeout occurred"],
        &["READONLY You can't write against a read only replica."],
        &["WRONGTYPE Operation against a key holding the wrong kind of value"],
        &["An error occurred (SlowDown) when calling the PutObject operation (reached max retries: 4): Please reduce your request rate."],
        &["An error occurred (404) when calling the HeadObject operation: Not Found"],
        &["An error occurred (403) when calling the HeadObject operation: Forbidden"],
        &[
            "Could not connect to the endpoint URL: \"https://b.s3.amazonaws.com/k/1\"",
            "Could not connect to the endpoint URL: \"https://c.s3.eu-west-1.amazonaws.com/k/2?x\"",
        ],
        &["Read timeout on endpoint URL: \"https://b.s3.amazonaws.com/k/1\""],
        &["<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message><BucketName>a</BucketName></Error>"],
        &["14 UNAVAILABLE: No connection established"],
        &[
            "4 DEADLINE_EXCEEDED: Deadline exceeded after 5.001s,metadata filters: 0.001s",
            "4 DEADLINE_EXCEEDED: Deadline exceeded after 10.2s,metadata filters: 0.003s",
        ],
        &[
            "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4 in organization org-abc123 on tokens per min. Limit: 10000, Used: 9900', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}",
            "Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-4 in organization org-zzz9 on tokens per min. Limit: 10000, Used: 7130', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}",
        ],
        &["Error code: 401 - {'error': {'message': 'Incorrect API key provided', 'type': 'invalid_request_error', 'code': 'invalid_api_key'}}"],
        &["{\"error\":{\"code\":403,\"message\":\"Quota exceeded\",\"status\":\"PERMISSION_DENIED\"}}"],
        &["{\"error\":{\"code\":404,\"message\":\"Not found\",\"status\":\"NOT_FOUND\"}}"],
        &[
            "{\"error\":\"too_many_requests\",\"retry_after\":12,\"request_id\":\"req_8sd7f6\"}",
            "{\"error\":\"too_many_requests\",\"retry_after\":3,\"request_id\":\"req_00aa1\"}",
        ],
        &["CAPCHA_NOT_READY"],
        &["ERROR_CAPTCHA_UNSOLVABLE"],
        &[
            "createTask: ERROR_PROXY_CONNECT_REFUSED (taskId=123456)",
            "createTask: ERROR_PROXY_CONNECT_REFUSED (taskId=99)",
        ],
        &["createTask: ERROR_IP_BLOCKED (taskId=5)"],
        &[
            "Blocked by DataDome (captcha-delivery.com), cid=AHrlqAAAAAMA1x2y3z",
            "Blocked by DataDome (captcha-delivery.com), cid=BBrlqBBBBBMAzzz000",
        ],
        &["Blocked by PerimeterX, uuid 7f1c8e9a-8f0b-4f5e-9b63-0a7b8f1b2c3d"],
        &[
            "Access Denied\nYou don't have permission to access \"http://www.a.example/x\" on this server.\nReference #18.2d351ab8.1557333295.a4e16ab",
            "Access Denied\nYou don't have permission to access \"http://www.a.example/p/9\" on this server.\nReference #18.9c0ba117.1700000001.1f2e3d4",
        ],
        &["Attention Required! | Cloudflare"],
        &["Just a moment..."],
        &[
            "Job 1f2e3d was killed: memory limit 512MB exceeded (used 530MB)",
            "Job 99aa00 was killed: memory limit 2GB exceeded (used 2.1GB)",
        ],
        &["container exited with code 137 (OOMKilled)"],
        &[
            "poll: task 8812 still pending after 120 s",
            "poll: task a91bc still pending after 300 s",
        ],
        &[
            "no offers found for B08N5WRWNW",
            "no offers found for B07XJ8C8F5",
        ],
        &[
            "Only 0 of 24 products parsed on page 3",
            "Only 2 of 24 products parsed on page 17",
        ],
        &[
            "Missing field 'price' in product 12345",
            "Missing field 'price' in product KX-99",
        ],
        &["Missing field 'title' in product 12345"],
        &[
            "selector '.price' matched nothing on https://a.example/p/1",
            "selector '.price' matched nothing on https://a.example/p/2",
        ],
        &["selector '#buy' matched nothing on https://a.example/p/1"],
    ]);
}
