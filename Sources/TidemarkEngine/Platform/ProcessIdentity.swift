// SAFETY: the calls take no arguments and cannot fail.
#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// The process's own identity, for whoever finds the store locked.
package enum ProcessIdentity {
  /// The process id.
  package static var current: Int32 { getpid() }
}
