//! Copies for containers. Owns: where they are until a container has them, and the archive that
//! the daemon unpacks into the volume of the run. On that volume they belong to the container's
//! user, and end with it. Does not know how to copy.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::Docker;
use bollard::query_parameters::UploadToContainerOptionsBuilder;
use engine::copy::{self, NotCopied};
use engine::{Error, RunSpec};
use futures_util::StreamExt as _;
use rustix::fs::{CWD, FileType, OFlags, readlinkat};
use tar::{Builder, EntryType, Header};
use tokio::sync::{mpsc, oneshot};
use trees::{Entry, Next, Trash, Visitor};
use uuid::Uuid;

use crate::files::{header, relative};
use crate::gpu_fraction::discard;
use crate::user::ContainerUser;
use crate::{failed, names};

/// Timeout for unpacking a copy.
const UNPACK_TIMEOUT: Duration = Duration::from_secs(3600);
/// Bytes of a piece of a file, and pieces that a slow daemon may be behind.
const PIECE_BYTES: usize = 256 << 10;
const PIECES_AHEAD: usize = 4;

/// Throws away what an earlier server left.
pub(crate) fn delete_earlier(copies: &Path, trash: &Trash) -> Result<(), Error> {
    let unreadable = |source| Error::Io { what: format!("read {}", copies.display()), source };
    let left = match fs::read_dir(copies) {
        Ok(found) => found.collect::<Result<Vec<_>, _>>().map_err(unreadable)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    left.into_iter().for_each(|folder| discard(trash, &folder.path()));
    Ok(())
}

/// The copies of one run; thrown away on drop.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    folder: Option<(PathBuf, Arc<Trash>)>,
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Some((folder, trash)) = &self.folder {
            discard(trash, folder);
        }
    }
}

impl Copies {
    /// Copies the repositories and buckets of a run into a new folder.
    pub(crate) async fn make(
        (all, bytes_max): (&Path, u64),
        trash: &Arc<Trash>,
        spec: &RunSpec,
        stop: &mut oneshot::Receiver<()>,
        tell: impl Fn(String) + Sync,
    ) -> Result<Self, NotCopied> {
        let mut copies = Self::default();
        for (at, (_, origin)) in engine::copy::copies(&spec.container).enumerate() {
            let new = || (all.join(Uuid::new_v4().to_string()), Arc::clone(trash));
            let (folder, _) = copies.folder.get_or_insert_with(new);
            let to = folder.join(at.to_string());
            copy::copy((origin, bytes_max), &to, stop, &tell).await?;
        }
        Ok(copies)
    }

    /// Puts the copies into a created container. If only the image knows the number of its user,
    /// all users may write to them.
    pub(crate) async fn put(
        &self,
        docker: &Docker,
        spec: &RunSpec,
        who: ContainerUser,
    ) -> Result<(), Error> {
        let Some((folder, _)) = &self.folder else { return Ok(()) };
        // The daemon answers when all is unpacked.
        let docker = docker.clone().with_timeout(UNPACK_TIMEOUT);
        for (at, (to, _)) in engine::copy::copies(&spec.container).enumerate() {
            let (pieces, mut archive) = mpsc::channel(PIECES_AHEAD);
            let pack = Pack { owner: who.ids(), open: who.is_a_name(), pieces };
            let (from, to) = (folder.join(at.to_string()), to.to_owned());
            tokio::task::spawn_blocking(move || pack.all(&from, &to));
            let archive = futures_util::stream::poll_fn(move |context| archive.poll_recv(context));
            let archive = archive.map(|piece: io::Result<Vec<u8>>| piece.map(Into::into));
            let sent = bollard::body_try_stream(archive);
            // Not at its own path: the daemon does not change the folder it unpacks into, which is
            // root's.
            let at_root = UploadToContainerOptionsBuilder::default().path("/").build();
            let name = names::container(spec.key);
            let given = docker.upload_to_container(&name, Some(at_root), sent).await;
            given.map_err(|fault| failed(format!("give run {} its copies", spec.key), fault))?;
        }
        Ok(())
    }
}

/// An archive that is sent in pieces.
struct Pack {
    owner: (u32, u32),
    open: bool,
    pieces: mpsc::Sender<io::Result<Vec<u8>>>,
}

impl Pack {
    fn all(self, from: &Path, to: &Path) {
        let pieces = BufWriter::with_capacity(PIECE_BYTES, Pieces(self.pieces.clone()));
        let archive = Builder::new(pieces);
        let mut packing = Packing { pack: &self, archive, to: relative(to).to_owned() };
        let packed = packing.folder().and_then(|()| {
            trees::walk(trees::open(CWD, from)?, &mut packing)?;
            packing.archive.into_inner()?.flush()
        });
        if let Err(error) = packed {
            // A dropped receiver needs no error.
            let _gone = self.pieces.blocking_send(Err(error));
        }
    }

    fn header(&self, kind: EntryType, mode: u32, size: u64) -> Header {
        let mode = if self.open { mode | (mode & 0o444) >> 1 } else { mode };
        header(kind, mode, self.owner, size)
    }
}

/// The archive of a folder while it is walked. Links stay links; what is neither folder, file nor
/// link is left out.
struct Packing<'a, W: Write> {
    pack: &'a Pack,
    archive: Builder<W>,
    /// The current folder.
    to: PathBuf,
}

impl<W: Write> Packing<'_, W> {
    fn folder(&mut self) -> io::Result<()> {
        let mut header = self.pack.header(EntryType::Directory, 0o755, 0);
        self.archive.append_data(&mut header, &self.to, io::empty())
    }

    fn link(&mut self, entry: Entry<'_>, to: &Path) -> io::Result<()> {
        let mut header = self.pack.header(EntryType::Symlink, 0o777, 0);
        let leads_to = readlinkat(entry.parent, entry.name, Vec::new())?;
        let leads_to = leads_to.to_bytes();
        // Literally, unless that is too long for a header.
        match header.set_link_name_literal(leads_to) {
            Ok(()) => self.archive.append_data(&mut header, to, io::empty()),
            Err(_) => self.archive.append_link(&mut header, to, OsStr::from_bytes(leads_to)),
        }
    }

    fn file(&mut self, entry: Entry<'_>, to: &Path) -> io::Result<()> {
        let file = File::from(entry.open(OFlags::RDONLY)?);
        let about = file.metadata()?;
        let mode = if about.permissions().mode() & 0o100 == 0 { 0o644 } else { 0o755 };
        let mut header = self.pack.header(EntryType::Regular, mode, about.len());
        self.archive.append_data(&mut header, to, Exactly { file, left: about.len() })
    }
}

impl<W: Write> Visitor for Packing<'_, W> {
    fn visit(&mut self, entry: Entry<'_>) -> io::Result<Next> {
        let to = self.to.join(OsStr::from_bytes(entry.name.to_bytes()));
        match entry.kind {
            FileType::Directory => return Ok(Next::Into),
            FileType::Symlink => self.link(entry, &to)?,
            FileType::RegularFile => self.file(entry, &to)?,
            _ => {}
        }
        Ok(Next::Past)
    }

    fn enter(&mut self, folder: Entry<'_>) -> io::Result<()> {
        self.to.push(OsStr::from_bytes(folder.name.to_bytes()));
        self.folder()
    }

    fn leave(&mut self, _folder: Entry<'_>) -> io::Result<()> {
        self.to.pop();
        Ok(())
    }
}

/// Sends the pieces to the reader of the archive.
struct Pieces(mpsc::Sender<io::Result<Vec<u8>>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.blocking_send(Ok(piece.to_vec())).map_err(io::Error::other)?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As many bytes of a file as its header says, even if it grows or shrinks meanwhile.
struct Exactly {
    file: File,
    left: u64,
}

impl Read for Exactly {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = (&mut self.file).take(self.left).read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// The folder that `tar` unpacks from the archive of a folder, and its listing of the archive.
    fn unpacked(from: &Path, open: bool) -> (tempfile::TempDir, String) {
        let (pieces, mut archive) = mpsc::channel(1);
        let from = from.to_owned();
        let pack = Pack { owner: (1000, 3_000_000), open, pieces };
        let packing = std::thread::spawn(move || pack.all(&from, Path::new("/code")));
        let mut bytes = Vec::new();
        while let Some(piece) = archive.blocking_recv() {
            bytes.extend(piece.unwrap());
        }
        packing.join().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("all.tar");
        fs::write(&file, bytes).unwrap();
        let tar = |words: &[&str]| {
            let done = Command::new("tar").args(words).arg(&file).current_dir(&folder).output();
            let done = done.unwrap();
            assert!(done.status.success(), "{done:?}");
            String::from_utf8(done.stdout).unwrap()
        };
        tar(&["--no-same-owner", "-xf"]);
        let listed = tar(&["--numeric-owner", "-tvf"]);
        (folder, listed)
    }

    #[test]
    fn names_links_modes_and_contents_arrive() {
        let from = tempfile::tempdir().unwrap();
        let deep = from.path().join("d".repeat(90)).join("e".repeat(90));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join("long"), vec![7; PIECE_BYTES + 1]).unwrap();
        fs::write(deep.join("run"), "").unwrap();
        fs::set_permissions(deep.join("run"), fs::Permissions::from_mode(0o700)).unwrap();
        symlink("../".repeat(50), from.path().join("link")).unwrap();
        let (folder, listed) = unpacked(from.path(), false);
        let code = folder.path().join("code");
        let deep = code.join("d".repeat(90)).join("e".repeat(90));
        assert_eq!(fs::read(deep.join("long")).unwrap(), vec![7; PIECE_BYTES + 1]);
        assert_eq!(fs::read_link(code.join("link")).unwrap(), PathBuf::from("../".repeat(50)));
        let lines = ["-rwxr-xr-x 1000/3000000", "-rw-r--r-- 1000/", "drwxr-xr-x 1000/"];
        assert!(lines.iter().all(|line| listed.contains(line)), "{listed}");
        let (_folder, listed) = unpacked(from.path(), true);
        assert!(listed.contains("drwxrwxrwx") && listed.contains("-rw-rw-rw-"), "{listed}");
    }

    #[test]
    fn a_tree_of_any_depth_is_packed_and_pipes_are_left_out() {
        use rustix::fs::{Mode, mkdirat, mknodat, openat};

        let from = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        mknodat(CWD, from.path().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
        fs::create_dir(from.path().join("d")).unwrap();
        let mut at = trees::open(CWD, from.path().join("d")).unwrap();
        for _ in 0..3000 {
            mkdirat(&at, c"d", Mode::RWXU).unwrap();
            at = trees::open(&at, c"d").unwrap();
        }
        let flags = OFlags::CREATE | OFlags::WRONLY;
        File::from(openat(&at, c"last", flags, Mode::RWXU).unwrap()).write_all(b"text").unwrap();
        let (pieces, mut archive) = mpsc::channel(1);
        let folder = from.path().to_owned();
        let pack = Pack { owner: (1, 1), open: false, pieces };
        let packing = std::thread::spawn(move || pack.all(&folder, Path::new("/code")));
        let mut bytes = Vec::new();
        while let Some(piece) = archive.blocking_recv() {
            bytes.extend(piece.unwrap());
        }
        packing.join().unwrap();
        let mut archive = tar::Archive::new(&*bytes);
        let entries: Vec<_> = archive.entries().unwrap().map(|entry| entry.unwrap()).collect();
        let last = entries.last().unwrap();
        assert_eq!((entries.len(), last.size()), (3003, 4));
        assert_eq!(last.path_bytes().len(), "code/".len() + 3001 * "d/".len() + "last".len());
        trees::remove(&from.path().join("d"), &|| true).unwrap();
    }
}
