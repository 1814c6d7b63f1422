import Synchronization
import Tidemark
import TidemarkEngine
import TidemarkTestKit

/// A disk in memory whose syncs can be held up.
final class HeldDisk: ForwardingDisk {
  let base: any FileSystem = MemoryFileSystem()
  let isHeld = Atomic(false)

  func hold() { isHeld.store(true, ordering: .sequentiallyConsistent) }
  func letGo() { isHeld.store(false, ordering: .sequentiallyConsistent) }

  func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    HeldFile(try base.open(path, mode), self)
  }
}

private final class HeldFile: ForwardingFile {
  let base: any File
  private let disk: HeldDisk

  init(_ base: any File, _ disk: HeldDisk) {
    self.base = base
    self.disk = disk
  }

  func sync() throws(FileSystemError) {
    while disk.isHeld.load(ordering: .sequentiallyConsistent) {}
    try base.sync()
  }
}
