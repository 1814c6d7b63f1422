#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

// SAFETY: `sysconf` takes and returns numbers.

/// The machine's processors.
package enum Processors {
  /// How many are online, at least one; also where the process is confined to fewer.
  package static let count = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}
