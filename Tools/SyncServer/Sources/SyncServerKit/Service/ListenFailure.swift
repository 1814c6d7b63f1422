internal import NIOCore

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

extension SettingsError {
  /// Why the server cannot listen, with advice.
  static func listening(at host: String, _ port: Int, _ error: any Error) -> SettingsError {
    let place = "cannot listen at \(host), port \(port): "
    if error is SocketAddressError.UnknownHost {
      return SettingsError(
        place + "no such host; give an address of this machine with --host", .unavailable)
    }
    guard let error = error as? IOError else {
      return SettingsError("\(place)\(error)", .unavailable)
    }
    switch error.errnoCode {
    case EADDRINUSE:
      return SettingsError(
        place + "another program uses the port; end that one, or choose another with --port",
        .unavailable)
    case EADDRNOTAVAIL:
      return SettingsError(
        place + "this machine does not have the address; give one of its own with --host, "
          + "or 0.0.0.0 for all", .unavailable)
    case EACCES, EPERM:
      return SettingsError(
        place + "not allowed; choose a port from 1024 on with --port", .forbidden)
    default:
      return SettingsError(place + String(errno: error.errnoCode), .unavailable)
    }
  }
}
