//! Opening: which processes may open a store, and the error messages for the refused ones.

use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use redb::{Database, TableDefinition};
use tourbillon_durable::codec::encode;
use tourbillon_durable::disk::{DiskStore, FILE, FORMAT, LOG_FILE};
use tourbillon_durable::store::{Store, StoreError};

use crate::scratch::{Mounted, Scratch, child, make, rows, run, skip, timer, told};

/// The error message of a store that does not open.
fn refused(directory: &Path) -> String {
    match DiskStore::new(directory).open() {
        Err(StoreError::Refused(why)) => why,
        other => panic!("it should be refused: {other:?}"),
    }
}

#[test]
fn a_second_process_is_told_who_holds_the_directory() {
    let scratch = Scratch::new("lock");
    let mut store = DiskStore::new(scratch.path());
    store.open().unwrap();
    let output = child("opening::child_opens", scratch.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let holder = format!("is in use by process {} (", std::process::id());
    assert!(said.contains(&holder), "{said}");
    assert!(said.contains("stop that, or name another directory"), "{said}");
    // A second open is refused even within the same process.
    assert!(refused(scratch.path()).contains(&holder));
    // Reopening the store keeps its lock.
    store.open().unwrap();
    assert!(refused(scratch.path()).contains(&holder));
    drop(store);
    let output = child("opening::child_opens", scratch.path()).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("opened with epoch 3"));
}

/// Opens a directory and prints the outcome.
#[test]
fn child_opens() {
    let Some(directory) = told() else { return };
    match DiskStore::new(directory).open() {
        Ok(head) => println!("opened with epoch {}", head.epoch),
        Err(error) => println!("{error}"),
    }
}

#[test]
fn a_file_is_not_a_directory() {
    let scratch = Scratch::new("file");
    let path = scratch.path().join("file");
    fs::write(&path, "text").unwrap();
    assert_eq!(
        refused(&path),
        format!("{} is not a directory: name one, or remove that file", path.display())
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "text");
}

#[test]
fn without_the_right_to_write_the_path_is_named() {
    let scratch = Scratch::new("rights");
    let directory = scratch.path().join("locked");
    fs::create_dir(&directory).unwrap();
    let mut rights = fs::metadata(&directory).unwrap().permissions();
    rights.set_readonly(true);
    fs::set_permissions(&directory, rights).unwrap();
    // Root may write everywhere, so the child runs as `nobody`.
    let mut command = child("opening::child_opens", &directory);
    if is_root() {
        command.uid(65_534).gid(65_534).current_dir("/");
    }
    let Ok(output) = command.output() else {
        return skip("this program cannot be run by another user from where it is");
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let lock = directory.join("lock");
    assert!(said.contains(&format!("{} cannot be written: ", lock.display())), "{said}");
    assert!(said.contains("give this user the right to, or name another directory"), "{said}");
}

fn is_root() -> bool {
    run("sh", &["-c", "test $(id -u) = 0"])
}

#[test]
fn a_read_only_disk_is_named() {
    let scratch = Scratch::new("read-only");
    let Some(mounted) = Mounted::new(scratch.path(), 16 << 20) else {
        return skip("a file system cannot be mounted: run it as root");
    };
    let mut store = DiskStore::new(mounted.path());
    let epoch = store.open().unwrap().epoch;
    let ops: Vec<_> = make(timer(1, 5000)).into_iter().chain(rows(2)).collect();
    store.commit(epoch, &ops).unwrap();
    drop(store);
    assert!(mounted.remount("ro"));
    let why = refused(mounted.path());
    assert!(why.contains("cannot be written: Read-only file system"), "{why}");
    assert!(why.contains("mount it for writing, or name another directory"), "{why}");
    assert!(mounted.remount("rw"));
    let head = DiskStore::new(mounted.path()).open().unwrap();
    assert_eq!(head.shard.next_generation.0, 2, "nothing is lost");
}

/// The names in a directory, without the lock, and what they hold. Of a link: its target.
fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = paths.filter(|path| !path.ends_with("lock")).collect();
    paths.sort();
    let held = |path: PathBuf| match fs::read_link(&path) {
        Ok(target) => (path, target.into_os_string().into_vec()),
        Err(_) => (path.clone(), fs::read(&path).unwrap()),
    };
    paths.into_iter().map(held).collect()
}

/// The disk with the file is not mounted. A new file in place of the link would be an empty store.
#[test]
fn a_link_to_a_file_that_is_not_there_is_refused_and_left() {
    let scratch = Scratch::new("link");
    let (data, disk) = (scratch.path().join("data"), scratch.path().join("disk"));
    DiskStore::new(&data).open().unwrap();
    fs::create_dir(&disk).unwrap();
    fs::rename(data.join(FILE), disk.join(FILE)).unwrap();
    std::os::unix::fs::symlink(disk.join(FILE), data.join(FILE)).unwrap();
    let unmounted = scratch.path().join("unmounted");
    fs::rename(&disk, &unmounted).unwrap();
    // What an unfinished copy left stays, too.
    fs::write(data.join(format!("{FILE}.new")), "a copy").unwrap();
    let before = contents(&data);
    let end = "timers.redb is a link to a file that is not there: mount its disk, or name another directory";
    let why = refused(&data);
    assert!(why.ends_with(end), "{why}");
    assert_eq!(contents(&data), before);
    fs::rename(unmounted, disk).unwrap();
    assert_eq!(DiskStore::new(&data).open().unwrap().epoch, 2, "it is the store that it was");
}

#[test]
fn a_missing_file_beside_the_log_of_a_store_is_not_replaced() {
    let scratch = Scratch::new("missing");
    let (data, aside) = (scratch.path().join("data"), scratch.path().join("aside"));
    let mut store = DiskStore::new(&data);
    let epoch = store.open().unwrap().epoch;
    let ops: Vec<_> = make(timer(1, 5000)).into_iter().chain(rows(2)).collect();
    store.commit(epoch, &ops).unwrap();
    drop(store);
    fs::rename(data.join(FILE), &aside).unwrap();
    let before = contents(&data);
    let why = refused(&data);
    assert!(
        why.contains("timers.redb is missing, and timers.log beside it is of a store"),
        "{why}"
    );
    assert!(why.ends_with("restore that file, or name another directory"), "{why}");
    assert_eq!(contents(&data), before);
    fs::rename(aside, data.join(FILE)).unwrap();
    assert_eq!(DiskStore::new(&data).open().unwrap().shard.next_generation.0, 2);
}

/// What a first start leaves that was killed: no file yet, perhaps an unfinished one; and an empty log at most.
#[test]
fn what_a_killed_first_start_leaves_is_opened() {
    let scratch = Scratch::new("first");
    for (nth, log) in [None, Some(0), Some(4096)].into_iter().enumerate() {
        let data = scratch.path().join(nth.to_string());
        fs::create_dir(&data).unwrap();
        fs::write(data.join(format!("{FILE}.new")), "unfinished").unwrap();
        if let Some(length) = log {
            fs::write(data.join(LOG_FILE), vec![0; length]).unwrap();
        }
        assert_eq!(DiskStore::new(&data).open().unwrap().epoch, 1, "{log:?}");
    }
}

/// A file that cannot be reached may be a store.
#[test]
fn a_file_that_cannot_be_looked_at_is_not_replaced() {
    let scratch = Scratch::new("loop");
    let path = scratch.path().join(FILE);
    std::os::unix::fs::symlink(FILE, &path).unwrap();
    let why = refused(scratch.path());
    assert!(why.starts_with(&format!("{} cannot be read: ", path.display())), "{why}");
    assert_eq!(fs::read_link(&path).unwrap(), Path::new(FILE));
}

/// Writes a row of the table `head` with redb alone.
fn write_head(directory: &Path, key: &[u8], value: &[u8]) {
    let database = Database::open(directory.join(FILE)).unwrap();
    let transaction = database.begin_write().unwrap();
    let head: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("head");
    transaction.open_table(head).unwrap().insert(key, value).unwrap();
    transaction.commit().unwrap();
}

#[test]
fn another_format_is_refused_and_left_as_it_is() {
    let scratch = Scratch::new("newer");
    DiskStore::new(scratch.path()).open().unwrap();
    for format in [FORMAT - 1, FORMAT + 1] {
        write_head(scratch.path(), b"format", &encode("head", b"format", &format));
        let why = refused(scratch.path());
        let end = format!(
            "has format {format}; this program knows {FORMAT}: use the version that wrote it, or a newer one"
        );
        assert!(why.ends_with(&end), "{why}");
    }
    write_head(scratch.path(), b"format", &encode("head", b"format", &FORMAT));
    assert_eq!(DiskStore::new(scratch.path()).open().unwrap().epoch, 2, "it was not changed");
}

#[test]
fn a_head_that_cannot_be_read_is_named() {
    let scratch = Scratch::new("head");
    DiskStore::new(scratch.path()).open().unwrap();
    write_head(scratch.path(), b"qorders", b"nonsense");
    let why = refused(scratch.path());
    assert!(
        why.contains("timers.redb is damaged: head, queue orders: the checksum of the value is "),
        "{why}"
    );
    assert!(why.contains("tourbillon check --repair"), "{why}");
}
