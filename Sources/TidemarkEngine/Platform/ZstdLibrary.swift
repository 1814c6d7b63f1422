internal import CZstd

// SAFETY: the call takes no arguments and cannot fail.

/// The zstd that the program runs with.
package enum ZstdLibrary {
  /// Its version, as in "1.5.7".
  package static var version: String {
    let number = ZSTD_versionNumber()
    return "\(number / 10_000).\(number / 100 % 100).\(number % 100)"
  }
}
