internal import Tidemark

/// The rules of an ``HTTPCache``, besides what requests and responses say.
public struct HTTPCachePolicy: Sendable, Hashable {
  /// Most responses; nil for any number.
  public var capacity: Int?
  /// Most bytes of responses with their bodies; nil for any number.
  public var bytes: Int?
  /// Bodies of more bytes are attachments, files beside the log.
  public var inlineBytes: Int
  /// Bodies of more bytes, or of more than ``bytes``, are handed on and not kept.
  public var mostBodyBytes: Int
  /// Most variants of one address that are kept, where its responses have a `Vary` field.
  public var variants: Int
  /// For how long a response that is fresh no more serves while the server cannot be reached, where
  /// the response says nothing about that; nil for however long. `must-revalidate` and `no-cache`
  /// forbid it.
  public var staleIfUnreachable: Duration?
  /// For how long a response that is fresh no more serves where the server answers 500, 502, 503 or
  /// 504, where neither request nor response says so.
  public var staleIfError: Duration
  /// Whether a cache that is offline serves even what says `must-revalidate` or `no-cache`, which
  /// RFC 9111 forbids: for programs whose users rather see something old than nothing.
  public var servesEverythingOffline: Bool

  /// Rules for a cache.
  /// - Parameters:
  ///   - capacity: most responses.
  ///   - bytes: most bytes of responses with their bodies.
  ///   - inlineBytes: bodies of more bytes are attachments.
  ///   - mostBodyBytes: bodies of more bytes are not kept.
  ///   - variants: most variants of one address.
  ///   - staleIfUnreachable: for how long stale responses serve without a server.
  ///   - staleIfError: for how long stale responses serve where the server fails.
  ///   - servesEverythingOffline: whether that holds for what forbids it, too.
  public init(
    capacity: Int? = 10_000, bytes: Int? = 256 << 20, inlineBytes: Int = 65_536,
    mostBodyBytes: Int = 1 << 30, variants: Int = 32, staleIfUnreachable: Duration? = nil,
    staleIfError: Duration = .zero, servesEverythingOffline: Bool = false
  ) {
    self.capacity = capacity
    self.bytes = bytes
    self.inlineBytes = inlineBytes
    self.mostBodyBytes = mostBodyBytes
    self.variants = variants
    self.staleIfUnreachable = staleIfUnreachable
    self.staleIfError = staleIfError
    self.servesEverythingOffline = servesEverythingOffline
  }

  /// Most bytes of a body that is kept: one that is longer than all may be would take the disk's
  /// room from what is kept, until it is known how long it is.
  var longestBody: Int { min(mostBodyBytes, bytes ?? .max) }

  var cachePolicy: CachePolicy { CachePolicy(maxAge: .zero, capacity: capacity, bytes: bytes) }
}

/// How often an ``HTTPCache`` was asked since it was made, and what came of it.
public struct HTTPCacheCounts: Sendable, Hashable {
  /// Requests answered with what was stored and fresh.
  public var hits = 0
  /// Requests answered with what was stored and fresh no more.
  public var staleHits = 0
  /// Requests answered with what was stored, after the server has said that it is still right.
  public var revalidated = 0
  /// Requests answered by the server.
  public var misses = 0
  /// Requests that are not the cache's: they went to the server as they were.
  public var bypassed = 0
  /// Requests that waited for the same one of somebody else.
  public var shared = 0
  /// Responses that may be kept and could not be, as on a disk that is full.
  public var storeFailures = 0

  /// None yet.
  public init() {}
}
