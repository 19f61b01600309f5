use super::*;
use crate::engine::Redrive;
use redrive_store::sqlite::SqliteStore;
use serde_json::json;
use std::io::Write;

type Found = (Vec<NewJob>, Vec<BrokenLine>);

fn redrive() -> Redrive {
    Redrive::over(Arc::new(SqliteStore::in_memory().expect("opened")))
}

fn read_as(tasks: &Tasks, naming: &Naming) -> Found {
    let (mut jobs, mut broken) = (Vec::new(), Vec::new());
    let each = |task: Result<ReadTask, BrokenLine>| {
        match task {
            Ok(task) => jobs.push(task.job),
            Err(line) => broken.push(line),
        }
        true
    };
    tasks.read(&redrive(), naming, each).expect("read");
    (jobs, broken)
}

fn read(name: &str, content: &[u8]) -> Found {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, content).expect("written");
    read_as(&Tasks::open(&path, TaskFormat::Auto).expect("opened"), &Naming::default())
}

fn inputs(found: Found) -> Vec<serde_json::Value> {
    assert_eq!(found.1, []);
    found.0.into_iter().map(|job| json!(job.input)).collect()
}

fn keys(content: &str) -> Vec<String> {
    read("t.jsonl", content.as_bytes()).0.into_iter().filter_map(|job| job.key).collect()
}

#[test]
fn broken_lines_are_named_and_the_rest_is_taken() {
    let content = b"{\"a\":1}\n{\"b\":\n\n[1]\n\xff\xfe{}\n{\"key\":{}}\n{\"c\":3}";
    let (jobs, broken) = read("tasks.jsonl", content);
    assert_eq!(jobs.len(), 2);
    let numbers: Vec<u64> = broken.iter().map(|line| line.number).collect();
    assert_eq!(numbers, [2, 4, 5, 6]);
    assert!(broken[0].why.starts_with("not JSON: EOF"), "{}", broken[0].why);
    assert!(broken[2].why.contains("not UTF-8"));
}

#[test]
fn a_file_that_is_to_be_taken_whole_is_refused_with_its_broken_lines() {
    let check = |text: &str| {
        let tasks = Tasks::copied("standard input", text.as_bytes(), TaskFormat::Auto).expect("read");
        tasks.check(&redrive(), &Naming::default())
    };
    assert!(check("{}\n{}\n").is_ok());
    let refused = check(&format!("{{}}\n{}", "{\n".repeat(30))).expect_err("broken");
    assert!(matches!(&refused, TasksError::Broken { lines, .. } if lines.len() == 20 && lines[0].number == 2));
    assert!(refused.to_string().contains("\n  standard input:2: not JSON"), "{refused}");
}

#[test]
fn folders_are_refused_and_what_is_not_there_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    assert!(matches!(Tasks::open(folder.path(), TaskFormat::Auto), Err(TasksError::Folder(_))));
    assert!(matches!(Tasks::open(&folder.path().join("no"), TaskFormat::Auto), Err(TasksError::Unopened { .. })));
}

#[test]
fn plain_lines_are_urls_and_comments_are_none() {
    let text = "\u{feff}https://a.example/1\r\n\n# not this one\n  https://b.example/2#part  \n";
    let (jobs, broken) = read("urls.txt", text.as_bytes());
    assert!(broken.is_empty());
    assert_eq!(json!(jobs[0].input), json!({"url": "https://a.example/1"}));
    assert_eq!((jobs.len(), jobs[1].target.as_deref()), (2, Some("b.example")));
}

/// A line that is added, removed or repaired changes nothing for the others; equal tasks of two files are one.
#[test]
fn a_task_is_known_by_its_content_and_by_which_of_equal_ones_it_is() {
    let (a, b, c) = ("{\"n\":1,\"m\":{\"x\":1,\"y\":2}}\n", "{\"n\":2}\n", "{\"n\":3}\n");
    let turned = "{ \"m\": {\"y\": 2, \"x\": 1}, \"n\": 1 }\n";
    let before = keys(&format!("{a}{b}{a}"));
    assert_ne!(before[0], before[2], "the same task on two lines is two jobs");
    assert_eq!(
        keys(&format!("{c}{turned}\n{b}{a}")),
        [keys(c)[0].clone(), before[0].clone(), before[1].clone(), before[2].clone()]
    );
    assert_eq!(keys(b)[0], before[1]);
    assert_eq!(keys("{\"key\":\"k\"}\n{\"key\":7}"), ["k", "7"]);
    assert_eq!(keys("{\"url\":\"x\"}"), read("t", b"x").0.into_iter().filter_map(|job| job.key).collect::<Vec<_>>());
}

#[test]
fn fields_may_be_named_to_know_tasks_by() {
    let naming =
        Naming { round: "monday".parse().ok(), fields: vec!["sku".into(), "shop".into()], ..Naming::default() };
    let text = "{\"sku\":7,\"shop\":\"a\",\"seen\":1}\n{\"sku\":7,\"shop\":\"a\",\"seen\":2}\n{\"sku\":7}\n";
    let tasks = Tasks::copied("t", text.as_bytes(), TaskFormat::Auto).expect("read");
    let (jobs, broken) = read_as(&tasks, &naming);
    assert!(jobs.iter().all(|job| job.key.as_deref() == Some("[7,\"a\"]")), "{jobs:?}");
    assert!(jobs.iter().all(|job| job.round == naming.round), "{jobs:?}");
    assert_eq!(broken[0].to_string(), "3: it has no shop, by which tasks are to be known");
}

#[test]
fn the_beginning_of_a_file_may_be_known_by_its_lines() {
    let by_line = ByLine { hash: "0123456789abcdef01234567".into(), lines: 3 };
    let naming = Naming { round: None, fields: vec!["n".into()], by_line: Some(by_line), ..Naming::default() };
    let text = "{\"n\":1}\n\n{\"key\":\"k\"}\n{\"n\":4}\n";
    let (jobs, _) = read_as(&Tasks::copied("t", text.as_bytes(), TaskFormat::Auto).expect("read"), &naming);
    let keys: Vec<_> = jobs.iter().filter_map(|job| job.key.as_deref()).collect();
    assert_eq!(keys, ["0123456789abcdef01234567:1", "k", "4"]);
}

#[test]
fn the_form_is_told_by_name_and_first_character() {
    let one = |name: &str, content: &str| inputs(read(name, content.as_bytes())).remove(0);
    assert_eq!(one("tasks", "\n {\"a\":1}\n"), json!({"a": 1}));
    assert_eq!(one("tasks", "x\n"), json!({"url": "x"}));
    assert_eq!(one("tasks.json", "[\n{\"a\":1}]"), json!({"a": 1}));
    assert_eq!(one("tasks.jsonl", "[{\"a\":1}]"), json!({"a": 1}));
    assert_eq!(one("Tasks.CSV", "a,b\n1,2\n"), json!({"a": "1", "b": "2"}));
    assert_eq!(one("tasks.tsv", "a\tb\n1\t2\n"), json!({"a": "1", "b": "2"}));
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).expect("packed");
    encoder.finish().expect("packed")
}

#[test]
fn compressed_files_are_unpacked_on_the_way() {
    let text = "a,b\n1,2\n3,4\n";
    let expected = [json!({"a": "1", "b": "2"}), json!({"a": "3", "b": "4"})];
    assert_eq!(inputs(read("t.csv.gz", &gzip(text))), expected);
    assert_eq!(inputs(read("t.csv", &gzip(text))), expected, "whatever the name says");
    assert_eq!(inputs(read("t.csv.zst", &zstd::encode_all(text.as_bytes(), 3).expect("packed"))), expected);
    let two = [gzip("x\n"), gzip("y\n")].concat();
    assert_eq!(inputs(read("t.gz", &two)), [json!({"url": "x"}), json!({"url": "y"})]);
    assert_eq!(inputs(read("t", b"(")), [json!({"url": "("})], "the first byte of another form");
    assert_eq!(inputs(read("t", b"")), Vec::<serde_json::Value>::new());
}

#[test]
fn what_breaks_off_is_told_and_its_last_line_is_not_taken() {
    let text: String = (0..20_000).map(|n| format!("https://shop.example/{}\n", n * 7_919)).collect();
    for (name, whole) in [("t.gz", gzip(&text)), ("t.zst", zstd::encode_all(text.as_bytes(), 3).expect("packed"))] {
        let (jobs, broken) = read(name, &whole[..whole.len() / 2]);
        assert_eq!(broken.len(), 1, "{name}");
        assert!(broken[0].why.contains("breaks off"), "{name}: {}", broken[0].why);
        assert_eq!(broken[0].number, jobs.len() as u64 + 1, "{name}");
        let last = jobs.last().map(|job| job.input["url"].as_str().expect("text").to_owned());
        assert!(last.is_none_or(|last| text.contains(&format!("{last}\n"))), "{name}: a whole line");
    }
    let (jobs, broken) = read("t.gz", &gzip("x\n")[..5]);
    assert_eq!((jobs.len(), broken.len()), (0, 1));
}

/// 200 MiB that are 200 KiB on disk: no more than one line is ever kept, and not that.
#[test]
fn a_line_that_unpacks_to_far_too_much_is_passed_over() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(b"first\n").expect("packed");
    let zeros = vec![b'0'; 1024 * 1024];
    (0..200).for_each(|_| encoder.write_all(&zeros).expect("packed"));
    encoder.write_all(b"\nlast\n").expect("packed");
    let (jobs, broken) = read("bomb.gz", &encoder.finish().expect("packed"));
    assert_eq!(jobs.len(), 2);
    assert_eq!((broken.len(), broken[0].number), (1, 2));
    assert!(broken[0].why.starts_with("longer than"), "{}", broken[0].why);
}

/// What is added while a file is read belongs to the next reading; a line that was being written is read to its end.
#[test]
fn a_file_that_grows_is_read_as_long_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("urls.txt");
    std::fs::write(&path, "https://a.example/1\nhttps://a.exa").expect("written");
    let tasks = Tasks::open(&path, TaskFormat::Auto).expect("opened");
    let mut file = std::fs::File::options().append(true).open(&path).expect("opened");
    file.write_all(b"mple/2\nhttps://a.example/3\n").expect("written");
    let urls = [json!({"url": "https://a.example/1"}), json!({"url": "https://a.example/2"})];
    assert_eq!(inputs(read_as(&tasks, &Naming::default())), urls);
    assert_eq!(inputs(read_as(&tasks, &Naming::default())), urls, "it can be read again");
}

/// A file that somebody has open, and closes when it is dropped.
struct Writing {
    folder: tempfile::TempDir,
    file: std::fs::File,
}

impl Writing {
    fn of(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = std::fs::File::create(folder.path().join(name)).expect("made");
        file.write_all(text.as_bytes()).expect("written");
        Self { folder, file }
    }

    /// The inputs, and whether a last line was left out, for what this process does.
    fn read(&self, name: &str) -> (Vec<serde_json::Value>, bool) {
        let tasks = Tasks::open(&self.folder.path().join(name), TaskFormat::Auto).expect("opened");
        let mut inputs = Vec::new();
        let each = |task: Result<ReadTask, BrokenLine>| {
            inputs.push(task.map_or_else(|line| json!(line.why), |task| json!(task.job.input)));
            true
        };
        let end = tasks.read(&redrive(), &Naming::default(), each).expect("read");
        let process = format!("process {} (", std::process::id());
        assert!(end.unfinished.as_ref().is_none_or(|why| why.starts_with(&process)), "{:?}", end.unfinished);
        (inputs, end.unfinished.is_some())
    }
}

/// Half of a line is no task; who has closed the file has written all of it.
#[test]
fn a_last_line_without_an_end_is_left_out_only_while_somebody_writes() {
    let half = [
        ("urls.txt", "x\nhttps://shop.exam"),
        ("t.csv", "url\nx\nhttps://shop.exam"),
        ("t.jsonl", "{\"url\":\"x\"}\n{\"a\":"),
    ];
    for (name, text) in half {
        let writing = Writing::of(name, text);
        assert_eq!(writing.read(name), (vec![json!({"url": "x"})], true), "{name}");
        let Writing { folder, mut file } = writing;
        file.write_all(if name == "t.jsonl" { b"1}" } else { b"ple/" }).expect("written");
        drop(file);
        let file = std::fs::File::open(folder.path().join(name)).expect("open for reading only");
        let (inputs, is_unfinished) = Writing { folder, file }.read(name);
        assert_eq!((inputs.len(), is_unfinished), (2, false), "{name}");
    }
    let given = Writing::of("urls.txt", "x\nhttps://shop.exam");
    let given = std::fs::File::open(given.folder.path().join("urls.txt")).expect("open").into();
    let given = Tasks::stream("standard input", given, TaskFormat::Auto);
    assert!(!given.is_stream(), "a file is one, also as standard input");
    let whole = Writing::of("t.jsonl", "{\"a\":1}\n{\"b\":2}");
    assert_eq!(
        whole.read("t.jsonl"),
        (vec![json!({"a": 1}), json!({"b": 2})], false),
        "an object that closes is whole"
    );
    let whole = Writing::of("t.json", "[{\"a\":1}]");
    assert_eq!(whole.read("t.json"), (vec![json!({"a": 1})], false), "so does an array");
}
