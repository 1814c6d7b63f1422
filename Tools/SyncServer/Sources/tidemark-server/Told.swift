internal import ArgumentParser
internal import SyncServerKit

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// SAFETY: a C call gets bytes that live until it returns.
enum Told {
  /// Prints in one line why a command does not go on, and returns the exit status for that.
  static func exit(_ error: SettingsError) -> ExitCode {
    let line = Array("tidemark-server: \(error.description)\n".utf8)
    _ = unsafe write(STDERR_FILENO, line, line.count)
    return ExitCode(error.kind.rawValue)
  }

  static func telling<R>(_ body: () throws -> R) throws -> R {
    do { return try body() } catch let error as SettingsError { throw exit(error) }
  }
}
