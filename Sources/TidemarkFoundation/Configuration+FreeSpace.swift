internal import Tidemark

#if canImport(Darwin)
  internal import Foundation
#endif

extension Store.Configuration {
  /// A copy in which space that the system can purge counts as free before a compaction on request
  /// is refused: iOS fills a good part of a disk with files that it can download again.
  var countingPurgeableSpace: Store.Configuration {
    var configuration = self
    #if canImport(Darwin) && !os(tvOS) && !os(watchOS)
      configuration.environment.freeBytesAfterPurge = { path in
        let key = URLResourceKey.volumeAvailableCapacityForImportantUsageKey
        let values = try? URL(filePath: path).resourceValues(forKeys: [key])
        return values?.volumeAvailableCapacityForImportantUsage.map { Int(clamping: $0) }
      }
    #endif
    return configuration
  }
}
