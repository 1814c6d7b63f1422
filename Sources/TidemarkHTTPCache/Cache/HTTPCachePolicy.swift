internal import Tidemark

/// The limits and staleness rules of an ``HTTPCache``, besides the rules in requests and responses.
public struct HTTPCachePolicy: Sendable, Hashable {
  /// The most responses that the cache keeps; nil for no limit. The default is 10,000.
  public var capacity: Int?
  /// The most bytes of all responses with their bodies; nil for no limit. The default is 256 MiB.
  public var bytes: Int?
  /// The largest body, in bytes, that the cache keeps in the store's log; the default is 64 KiB.
  /// Larger bodies become attachments, which are files beside the log.
  public var inlineBytes: Int
  /// The largest body, in bytes, that the cache keeps; the default is 1 GiB. The cache passes
  /// larger bodies on without keeping them, and also bodies larger than ``bytes``.
  public var mostBodyBytes: Int
  /// The most variants of one address that the cache keeps, if its responses have a `Vary` field.
  /// The default is 32.
  public var variants: Int
  /// For how long a stale response may still answer while its server cannot be reached, if the
  /// response does not say. Nil sets no limit, and is the default. `must-revalidate` and `no-cache`
  /// forbid such answers.
  public var staleIfUnreachable: Duration?
  /// For how long a stale response may still answer when its server answers 500, 502, 503 or 504,
  /// if neither request nor response says. The default is zero.
  public var staleIfError: Duration
  /// Whether an offline cache also answers with responses that say `must-revalidate` or `no-cache`.
  /// RFC 9111 forbids that; set it if your users prefer an old response to none. The default is
  /// false.
  public var servesEverythingOffline: Bool

  /// Creates the rules of a cache; every parameter has a default.
  /// - Parameters:
  ///   - capacity: the most responses; nil for no limit.
  ///   - bytes: the most bytes of all responses; nil for no limit.
  ///   - inlineBytes: larger bodies become attachments.
  ///   - mostBodyBytes: larger bodies are not kept.
  ///   - variants: the most variants of one address.
  ///   - staleIfUnreachable: for how long stale responses answer while a server cannot be reached;
  ///     nil for no limit.
  ///   - staleIfError: for how long stale responses answer when a server fails.
  ///   - servesEverythingOffline: whether an offline cache ignores `must-revalidate` and
  ///     `no-cache`.
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

/// Counts how an ``HTTPCache`` has answered requests since it was created.
public struct HTTPCacheCounts: Sendable, Hashable {
  /// How many requests got a stored response that was fresh.
  public var hits = 0
  /// How many requests got a stored response that was stale.
  public var staleHits = 0
  /// How many requests got a stored response after the server had confirmed it.
  public var revalidated = 0
  /// How many requests got a new response from the server.
  public var misses = 0
  /// How many requests went to the server unchanged, since the cache does not handle such requests.
  public var bypassed = 0
  /// How many requests waited for an equal request in flight and got its response.
  public var shared = 0
  /// How many responses the cache could have kept but could not store, for example on a full disk.
  public var storeFailures = 0

  /// Creates counts that are all 0.
  public init() {}
}
