use super::*;

fn random() -> Random {
    Random::new(7)
}

fn disk<'a>(changes: &[Change<'a>]) -> Disk<'a> {
    let mut disk = Disk::new();
    for change in changes {
        disk.apply(change, &mut random());
    }
    disk
}

const NEW: Change<'static> = Change::Create { path: "a", inode: 1 };
const NAMED: Change<'static> = Change::SyncFolder { path: "" };
const SYNC: Change<'static> = Change::Sync { inode: 1 };

fn write(place: u64, data: &[u8]) -> Change<'_> {
    Change::Write { inode: 1, place, data }
}

fn content(disk: &Disk<'_>, loss: Loss) -> Option<Vec<u8>> {
    disk.after(loss, &mut random()).files.remove("a")
}

#[test]
fn what_is_synced_stays_and_what_is_not_may_go() {
    let disk = disk(&[NEW, NAMED, write(0, b"old"), SYNC, write(1, b"new")]);
    assert_eq!(content(&disk, Loss::All).as_deref(), Some(&b"old"[..]));
    assert_eq!(content(&disk, Loss::Nothing).as_deref(), Some(&b"onew"[..]));
}

#[test]
fn a_name_stays_only_once_its_folder_is_synced() {
    let made = Change::MakeFolder { path: "f" };
    let file = Change::Create { path: "f/b", inode: 2 };
    let disk = disk(&[made, file, Change::Sync { inode: 2 }, Change::SyncFolder { path: "f" }]);
    assert_eq!(disk.after(Loss::All, &mut random()), Tree::default());
    assert_eq!(disk.after(Loss::Nothing, &mut random()).files.len(), 1);
}

#[test]
fn sectors_of_a_write_may_go_alone() {
    let data = vec![1; 8 * 512];
    let before = vec![0; 8 * 512];
    let disk = disk(&[NEW, NAMED, write(0, &before), SYNC, write(0, &data)]);
    let torn = content(&disk, Loss::Sectors).expect("the file");
    let sectors: Vec<u8> = torn.chunks(512).map(|sector| sector[0]).collect();
    assert!(torn.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])));
    assert!(sectors.contains(&0) && sectors.contains(&1), "{sectors:?}");
}

#[test]
fn a_later_write_may_be_there_without_an_earlier_one() {
    let disk = disk(&[NEW, NAMED, write(0, b"1"), write(1, b"2")]);
    let mut random = random();
    let seen: std::collections::BTreeSet<_> = (0..64)
        .map(|_| disk.after(Loss::Some, &mut random).files.remove("a").unwrap_or_default())
        .collect();
    assert!(seen.contains(&b"\x002"[..]), "{seen:?}");
}

#[test]
fn what_a_failed_sync_drops_is_not_written_by_the_next_one() {
    let data: Vec<_> = (0..32).map(|n| vec![n; 1]).collect();
    let mut changes = vec![NEW, NAMED];
    changes.extend(data.iter().zip(0..).map(|(one, place)| write(place, one)));
    changes.extend([Change::BadSync { inode: 1 }, SYNC]);
    let kept = content(&disk(&changes), Loss::Nothing).expect("the file");
    assert!(kept != (0..32).collect::<Vec<u8>>(), "everything was kept");
}
