public import Tidemark

/// A cache manager with a longest age, a hash and a capacity, in front of whatever loads pictures.
///
/// Readers of one picture share one request, pictures make room by their last use, and what the
/// server says is still the same is not sent again.
public struct PictureCache: Sendable {
  private let pictures: Cache<[UInt8]>
  private let source: CacheSource<[UInt8]>

  /// - Parameter load: loads a picture; nil where the hash is still right.
  public init(
    _ store: Store,
    load:
      @escaping @Sendable (_ name: String, _ hash: [UInt8]?) async throws -> (
        bytes: [UInt8], hash: [UInt8]
      )?
  ) throws {
    pictures = try store.cache(
      prefix: "pictures/",
      policy: CachePolicy(
        maxAge: .seconds(3_600), maxStale: .seconds(30 * 86_400), capacity: 500, bytes: 50 << 20))
    source = CacheSource(retry: RetryPolicy(attempts: 3)) { request in
      guard let picture = try await load(request.key.text, request.hash) else {
        return .notModified()
      }
      return .value(picture.bytes, hash: picture.hash)
    }
  }

  /// A picture: the kept one while it is valid, and where the server cannot be reached.
  public func picture(_ name: String) async throws -> [UInt8]? {
    let read = try await pictures.read(name, .cacheFirst, from: source)
    if read.value == nil, let error = read.error { throw error }
    return read.value
  }

  /// How many requests the cache has saved.
  public var requestsAvoided: Int { pictures.counts.requestsAvoided }
}
