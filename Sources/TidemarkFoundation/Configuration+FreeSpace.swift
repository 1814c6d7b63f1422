internal import Tidemark

#if canImport(Darwin)
  internal import Foundation
#endif

extension Store.Configuration {
  /// With space counted as free that the system purges for what a user waits for: iOS holds a good
  /// part of a disk with files that it can fetch again.
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
