use std::collections::HashMap;
use std::fs::TryLockError;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn root_of(variables: &[(&str, &str)]) -> Result<PathBuf, CacheError> {
    let variables: HashMap<&str, &str> = variables.iter().copied().collect();
    root_from(|name| variables.get(name).map(OsString::from))
}

fn put(text: &'static str) -> impl FnOnce(&Path) -> Result<(), CacheError> {
    move |folder| {
        fs::write(folder.join("made"), text).unwrap();
        Ok(())
    }
}

fn made(entry: &Path) -> String {
    fs::read_to_string(entry.join("made")).unwrap()
}

#[test]
fn our_own_variable_wins_then_xdg_then_home() {
    let all = [("COFFERDAM_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
    assert_eq!(root_of(&all).unwrap(), Path::new("/a"));
    assert_eq!(root_of(&all[1..]).unwrap(), Path::new("/b/cofferdam"));
    assert_eq!(root_of(&all[2..]).unwrap(), Path::new("/c/.cache/cofferdam"));
    assert!(matches!(root_of(&[]), Err(CacheError::NoRoot)));
}

#[test]
fn an_empty_variable_and_a_relative_xdg_folder_count_as_unset() {
    let variables = [("COFFERDAM_CACHE", ""), ("XDG_CACHE_HOME", "relative"), ("HOME", "/c")];
    assert_eq!(root_of(&variables).unwrap(), Path::new("/c/.cache/cofferdam"));
}

#[test]
fn the_root_is_absolute_even_if_our_variable_is_not() {
    assert!(root_of(&[("COFFERDAM_CACHE", "here")]).unwrap().is_absolute());
}

#[test]
fn a_key_changes_with_every_piece_and_with_where_a_piece_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "abc").unwrap();
    let keys = [
        Key::new().finish(),
        Key::new().text("").finish(),
        Key::new().text("abc").finish(),
        Key::new().text("ab").text("c").finish(),
        Key::new().text("a").text("bc").finish(),
        Key::new().file(&file).unwrap().finish(),
    ];
    let distinct: std::collections::HashSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
    fs::write(&file, "abd").unwrap();
    assert_ne!(Key::new().file(&file).unwrap().finish(), keys[5]);
}

#[test]
fn a_key_is_the_same_for_the_same_contents_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        fs::write(folder.path().join(name), "same").unwrap();
    }
    let key = |name| Key::new().file(&folder.path().join(name)).unwrap().finish();
    assert_eq!(key("one"), key("two"));
}

#[test]
fn an_entry_is_made_once() {
    let root = tempfile::tempdir().unwrap();
    let first = entry_in(root.path(), "kind", "key", put("first")).unwrap();
    let second = entry_in(root.path(), "kind", "key", put("second")).unwrap();
    assert_eq!(first, second);
    assert_eq!(made(&second), "first");
}

#[test]
fn a_failed_maker_leaves_nothing_and_the_next_one_succeeds() {
    let root = tempfile::tempdir().unwrap();
    let failed = entry_in(root.path(), "kind", "key", |folder| {
        fs::write(folder.join("half"), "").unwrap();
        Err(CacheError::NoRoot)
    });
    assert!(matches!(failed, Err(CacheError::NoRoot)));
    assert!(!partial_path(&root.path().join("kind"), "key").exists());
    let entry = entry_in(root.path(), "kind", "key", put("made")).unwrap();
    assert!(!entry.join("half").exists());
}

#[test]
fn of_many_at_once_exactly_one_makes_the_entry() {
    let root = tempfile::tempdir().unwrap();
    let (makers, start) = (AtomicUsize::new(0), Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                let entry = entry_in(root.path(), "kind", "key", |folder| {
                    makers.fetch_add(1, Ordering::SeqCst);
                    let lock = File::open(lock_path(&root.path().join("kind"), "key")).unwrap();
                    assert!(matches!(lock.try_lock(), Err(TryLockError::WouldBlock)), "nothing keeps others out");
                    put("made")(folder)
                });
                assert_eq!(made(&entry.unwrap()), "made");
            });
        }
    });
    assert_eq!(makers.load(Ordering::SeqCst), 1);
}

#[test]
fn what_a_dead_maker_left_goes_and_what_a_living_one_is_making_stays() {
    let root = tempfile::tempdir().unwrap();
    let shelf = root.path().join("kind");
    for key in ["key", "dead", "living"] {
        fs::create_dir_all(partial_path(&shelf, key).join("half")).unwrap();
    }
    let of_another = shelf.join(".key.1.partial");
    fs::create_dir_all(&of_another).unwrap();
    let living = lock(&shelf, "living").unwrap();
    let entry = entry_in(root.path(), "kind", "key", put("made")).unwrap();
    assert!(!entry.join("half").exists());
    assert!(!partial_path(&shelf, "dead").exists() && !of_another.exists());
    assert!(partial_path(&shelf, "living").exists());
    drop(living);
}

#[test]
fn a_name_that_leads_elsewhere_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for name in ["", "..", ".hidden", "a/b", "a b"] {
        assert!(matches!(entry_in(root.path(), name, "key", put("")), Err(CacheError::Name(_))), "{name:?}");
        assert!(matches!(entry_in(root.path(), "kind", name, put("")), Err(CacheError::Name(_))), "{name:?}");
    }
}
