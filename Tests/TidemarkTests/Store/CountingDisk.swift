import CAllocationCount
import TidemarkEngine
import TidemarkTestKit

/// A disk in memory that counts what is asked of its files, and what it allocates itself.
final class CountingDisk: ForwardingDisk {
  let base: any FileSystem = MemoryFileSystem()
  private let counts = Lock((calls: 0, allocations: 0))

  /// Calls that would be system calls on a real disk.
  var calls: Int { counts.withLock { $0.calls } }
  /// Allocations of the disk in memory, which a real one would not make.
  var allocations: Int { counts.withLock { $0.allocations } }

  /// Counts a call, and what was allocated since it began.
  fileprivate func noteCall(_ before: UInt) {
    counts.withLock { counts in
      counts.calls += 1
      counts.allocations += Int(allocation_count() - before)
    }
  }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    CountingFile(try base.open(path, mode), self)
  }
}

private final class CountingFile: ForwardingFile {
  let base: any File
  private let disk: CountingDisk

  init(_ base: any File, _ disk: CountingDisk) {
    self.base = base
    self.disk = disk
  }

  func length() throws(FileSystemError) -> Int {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    return try base.length()
  }

  func read(into buffer: inout MutableRawSpan, at offset: Int) throws(FileSystemError) -> Int {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    return try base.read(into: &buffer, at: offset)
  }

  func write(_ bytes: RawSpan, at offset: Int) throws(FileSystemError) -> Int {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    return try base.write(bytes, at: offset)
  }

  func truncate(to length: Int) throws(FileSystemError) {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    try base.truncate(to: length)
  }

  func allocate(to length: Int) throws(FileSystemError) {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    try base.allocate(to: length)
  }

  func sync() throws(FileSystemError) {
    let before = allocation_count()
    defer { disk.noteCall(before) }
    try base.sync()
  }
}
