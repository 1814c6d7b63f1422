/// The transport that needs no other packages.
public enum PlatformTransport {
  /// A new transport: libcurl's on Linux, Foundation's `URLSession` elsewhere.
  /// - Parameter connections: most connections to a server; on Linux, most idle ones that are kept.
  public static func make(connections: Int = 4) -> any HTTPTransport {
    #if !canImport(Darwin) && (canImport(Glibc) || canImport(Musl))
      CurlTransport(connections: connections)
    #else
      URLSessionTransport(connections: connections)
    #endif
  }
}
