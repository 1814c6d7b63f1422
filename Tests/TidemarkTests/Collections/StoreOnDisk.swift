import Tidemark
import TidemarkEngine
import TidemarkTestKit

extension Store.Configuration {
  /// A configuration for a store on a disk that a test keeps.
  init(on disk: MemoryFileSystem) {
    self.init()
    environment.fileSystem = disk
  }
}
