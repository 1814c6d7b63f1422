/// Everything that the engine asks of a disk.
///
/// The engine does all its input and output through this protocol, so that tests can put a
/// simulated disk under it, cut the power at any call and look at what survives.
/// Paths are plain strings with `/` between components. Implementations repeat a system call that a
/// signal has interrupted.
package protocol FileSystem: Sendable {
  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File

  /// Creates a directory whose parent exists; `EEXIST` when there is something already.
  func createDirectory(_ path: String) throws(FileSystemError)

  /// Makes the names in a directory durable: files that were created, renamed or removed there.
  func syncDirectory(_ path: String) throws(FileSystemError)

  /// The names in a directory, without `.` and `..`, in byte order.
  func list(_ path: String) throws(FileSystemError) -> [String]

  /// Removes a file or an empty directory.
  func remove(_ path: String) throws(FileSystemError)

  /// Gives a file another name in the same directory, and replaces a file that has that name. A
  /// crash before the directory is synced leaves the file with the old name or the new one.
  func rename(_ path: String, to newPath: String) throws(FileSystemError)

  /// The kind of file at a path; nil when there is nothing.
  func kind(_ path: String) throws(FileSystemError) -> FileKind?

  /// Takes the exclusive lock of a file, which is created when missing, and writes `owner` into it.
  ///
  /// The lock ends when it is released or when the process ends. `owner` is a short text for the
  /// error message of whoever finds the lock taken.
  func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome

  /// Sixteen bytes that stay the same until the machine starts again.
  func bootIdentifier() throws(FileSystemError) -> [UInt8]

  /// How many bytes files in a directory may still take; nil where that is not known.
  func freeBytes(_ path: String) -> Int?
}

extension FileSystem {
  package func freeBytes(_ path: String) -> Int? { nil }
}

/// How a file is opened.
package enum FileMode: Sendable, Hashable {
  /// For reading; the file must exist.
  case read
  /// For reading and writing; the file must exist.
  case readWrite
  /// For reading and writing; the file must not exist and is created empty.
  case create
}

package enum FileKind: Sendable, Hashable {
  case file
  case directory
  case other
}

/// The answer to ``FileSystem/lock(_:owner:)``.
package enum FileLockOutcome: Sendable {
  /// The lock is ours until released.
  case acquired(any FileLock)
  /// Another process has it; `owner` is what it wrote into the file.
  case held(owner: [UInt8])
  /// This process has it already.
  case heldByThisProcess
}

/// A lock that is held.
package protocol FileLock: AnyObject, Sendable {
  /// Whether the file that was locked is still the one at its path. If not, it was removed or
  /// replaced, or its directory was, and somebody else may have the lock of another file there.
  var isCurrent: Bool { get }

  /// Gives the lock back. Further calls do nothing.
  func release()
}

/// An open file.
///
/// Transfers may be short, like those of the system calls beneath; the engine's `readFully` and
/// `writeFully` loop. It is a class, since readers share a segment's file, also while a compaction
/// replaces the segment: the file stays open until the last reference is gone.
package protocol File: AnyObject, Sendable {
  /// The length in bytes.
  func length() throws(FileSystemError) -> Int

  /// Reads up to `buffer.byteCount` bytes at `offset`.
  /// - Returns: how many were read; 0 only at the end of the file.
  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int

  /// Writes bytes at `offset`, which may lie at or beyond the end.
  /// - Returns: how many were written, at least 1 unless `bytes` is empty.
  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int

  /// Cuts the file, or extends it with zeros for which no disk space is allocated.
  func truncate(to length: Int) throws(FileSystemError)

  /// Makes the file at least `length` bytes long, with space on the disk behind every byte.
  /// New bytes read as zeros; existing bytes stay.
  func allocate(to length: Int) throws(FileSystemError)

  /// Makes bytes and length durable. After an error the unsynced bytes may be lost, even if a later
  /// sync succeeds: the system may have dropped them from its cache.
  func sync() throws(FileSystemError)

  /// Writes dirty pages to the drive, so that the next ``sync()`` has less to wait for. They may be
  /// lost in a power cut all the same; an error means what an error of `sync()` does.
  func writeBack() throws(FileSystemError)

  /// Closes the file. Further calls do nothing; any other call after it throws `EBADF`.
  func close()
}

extension File {
  package func writeBack() throws(FileSystemError) { try sync() }
}
