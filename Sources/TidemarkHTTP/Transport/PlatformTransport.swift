/// The transports that need nothing but what the platform has.
public enum PlatformTransport {
  /// A new transport: libcurl's on Linux, Foundation's `URLSession` elsewhere.
  /// - Parameter connections: most connections that are kept.
  public static func make(connections: Int = 4) -> any HTTPTransport {
    #if os(Linux)
      CurlTransport(connections: connections)
    #else
      URLSessionTransport(connections: connections)
    #endif
  }
}
