//! What well-known programs mean by flags that mean a password elsewhere. Of a program that is not in here the worst is believed.

use super::After;

/// Programs that run the command after them.
const WRAPPERS: &[&str] = &[
    "command", "doas", "env", "exec", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "xargs",
];

/// Programs that run the script after them: its flags are its own.
const INTERPRETERS: &[&str] =
    &["bash", "bun", "dash", "deno", "node", "perl", "php", "python", "ruby", "sh", "uv", "zsh"];

/// Programs by which `-p` and `-P` are nothing that takes a secret: to make parents, to keep what was, how many at once.
const KEEPERS: &[&str] = &[
    "cp", "df", "find", "grep", "install", "jq", "make", "mkdir", "mv", "parallel", "read", "rmdir", "rsync", "sed",
    "tar", "test", "touch", "type", "which", "xargs",
];

/// Programs by which one of them is a port, if it looks like one.
const BY_PORT: &[&str] = &[
    "docker",
    "mariadb",
    "mysql",
    "mysqldump",
    "nc",
    "pg_dump",
    "pg_restore",
    "podman",
    "psql",
    "scp",
    "sftp",
    "ssh",
    "telnet",
];

/// Programs by which `-u` and `-U` are a user without a password, or nothing of the kind.
const NAME_ONLY: &[&str] = &[
    "createdb",
    "date",
    "diff",
    "docker",
    "doas",
    "dropdb",
    "git",
    "id",
    "journalctl",
    "mariadb",
    "mysql",
    "mysqladmin",
    "mysqldump",
    "pg_dump",
    "pg_restore",
    "podman",
    "psql",
    "sort",
    "sudo",
    "tar",
    "uname",
    "uniq",
];

/// Programs by which other flags are followed by a password, too.
const OTHERWISE_SECRET: &[(&str, &str)] = &[
    ("kinit", "-w"),
    ("ldapadd", "-w"),
    ("ldapmodify", "-w"),
    ("ldapsearch", "-w"),
    ("ldapwhoami", "-w"),
    ("smbclient", "-U"),
];

/// Flags with one dash that are words: by many programs they are written so.
const P_WORDS: &[&str] = &[
    "page",
    "pages",
    "parallel",
    "params",
    "path",
    "pattern",
    "period",
    "platform",
    "plugin",
    "policy",
    "pool",
    "port",
    "prefix",
    "pretty",
    "print",
    "priority",
    "processes",
    "product",
    "profile",
    "progress",
    "project",
    "proxy",
    "public",
];

/// A program by its name, without its folder and version.
fn named(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if bare.is_empty() { name } else { bare }
}

fn is_one_of(program: &str, list: &[&str]) -> bool {
    list.contains(&named(program))
}

/// Whether what a word names runs what comes after it: the flags after that are another's.
pub(super) fn runs_another(program: &str) -> bool {
    is_one_of(program, WRAPPERS) || is_one_of(program, INTERPRETERS)
}

/// What a flag of a program says of the word after it.
pub(super) fn after_flag(program: &str, flag: &str) -> After {
    if OTHERWISE_SECRET.contains(&(named(program), flag)) {
        return After::Secret;
    }
    match flag {
        "-p" | "-P" | "-u" | "-U" if is_one_of(program, INTERPRETERS) => After::Nothing,
        "-p" | "-P" if is_one_of(program, KEEPERS) => After::Nothing,
        "-p" | "-P" if is_one_of(program, BY_PORT) => After::Port,
        "-p" | "-P" => After::Unless,
        "-u" | "-U" if is_one_of(program, NAME_ONLY) => After::Name,
        "-u" | "-U" | "-a" => After::User,
        "-H" | "--header" => After::Header,
        "-b" => After::Cookie,
        _ => After::Nothing,
    }
}

/// Whether a flag may have a password attached to it: `-phunter2`, `-ubob:hunter2`.
pub(super) fn is_attached(program: &str, flag: &str) -> bool {
    match flag.as_bytes() {
        [b'-', b'p' | b'P', _, ..] if is_one_of(program, KEEPERS) || P_WORDS.contains(&&flag[1..]) => false,
        [b'-', b'p' | b'P', rest @ ..] if !rest.is_empty() => !rest.iter().all(u8::is_ascii_digit) || rest.len() > 5,
        [b'-', b'u' | b'U' | b'a', rest @ ..] => rest.contains(&b':'),
        _ => false,
    }
}
