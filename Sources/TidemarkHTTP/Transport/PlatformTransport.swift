/// Makes the HTTP transport that needs no other packages on this platform.
public enum PlatformTransport {
  /// Returns a new transport: ``CurlTransport`` on Linux, ``URLSessionTransport`` elsewhere.
  /// - Parameter connections: the most connections to a server; on Linux, the most idle connections
  ///   that are kept.
  public static func make(connections: Int = 4) -> any HTTPTransport {
    #if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
      CurlTransport(connections: connections)
    #else
      URLSessionTransport(connections: connections)
    #endif
  }
}
