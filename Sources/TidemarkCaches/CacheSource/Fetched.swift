internal import TidemarkEngine

/// The answer of a source that stands behind a ``Cache``.
public enum Fetched<Value: Sendable>: Sendable {
  /// A value, with a validator hash, labels (nil for those that the key has), for how long it is
  /// valid (nil for the policy's), and a file beside the log, written to the cache's store before.
  case value(
    Value, hash: [UInt8]? = nil, labels: [EntryLabel]? = nil, maxAge: Duration? = nil,
    attachment: StagedAttachment? = nil)
  /// The value with the hash that was asked about is still right.
  case notModified(hash: [UInt8]? = nil, maxAge: Duration? = nil)
  /// There is no such thing, and for so long nobody needs to ask again.
  case absent(maxAge: Duration = .zero)
}

/// A question to the source behind a cache.
public struct SourceRequest: Sendable, Hashable {
  /// The key, without the cache's prefix.
  public var key: Key
  /// The validator hash of the value that is there; nil where there is none, so that
  /// ``Fetched/notModified(hash:maxAge:)`` is no answer.
  public var hash: [UInt8]?
}

/// When a read asks the source behind a cache. None asks while ``CacheSource/isOnline`` says no:
/// then the outcome's error is `offline`.
public enum ReadPolicy: Sendable, Hashable {
  /// Gives what is there at once; asks when that is not valid. Offline it gives what is there.
  case staleWhileRevalidate
  /// Asks when nothing valid is there. Offline what is there serves as where the source fails.
  case cacheFirst
  /// Asks; what is there serves where that fails, and offline.
  case networkFirst
  /// As `networkFirst`, after a change of one's own, such as a request that has edited the value: a
  /// question that is under way may have been answered before the change, so it is called off, and
  /// whoever waits for it gets the answer to this one.
  case refresh
  /// Asks, and takes nothing but the answer. Offline it gives nothing.
  case networkOnly
  /// Never asks; takes what has been valid no more for so long at most, nil for however long.
  case cacheOnly(maxStale: Duration? = nil)
  /// As `cacheFirst`; offline it gives what is there, however long it has been stale.
  case automatic

  /// Whether the source is asked whatever is there.
  var asksAnyway: Bool {
    switch self {
    case .networkFirst, .refresh, .networkOnly: true
    case .staleWhileRevalidate, .cacheFirst, .cacheOnly, .automatic: false
    }
  }
}

/// The outcome of a read through a cache: one of five.
public struct CacheRead<Value: Sendable>: Sendable {
  /// Where an outcome came from.
  public enum Kind: Sendable, Hashable {
    /// Something was there, and the source has answered.
    case both
    /// Something was there; the source was not asked, or has failed.
    case storedOnly
    /// Nothing was there, or nobody looked, and the source has answered.
    case fetchedOnly
    /// The source says that there is no such thing: what was there was given up.
    case gone
    /// Nothing was there, and the source was not asked, or has failed.
    case neither
  }

  /// The entry that was there.
  public var stored: CachedEntry<Value>?
  /// The source's answer as it is kept, or what was written while the source was asked. Where
  /// something else was said meanwhile, or it does not fit, the answer itself, which is not kept.
  public var fetched: CachedEntry<Value>?
  /// Whether the source has said that there is no such thing.
  public var isGone = false
  /// Why the source has not answered: `offline` where it could not be asked; nil where it need not
  /// be.
  public var error: (any Error)?

  /// Which of the five it is.
  public var kind: Kind {
    if isGone { return .gone }
    if fetched != nil { return stored == nil ? .fetchedOnly : .both }
    return stored == nil ? .neither : .storedOnly
  }

  /// The newest value; nil where there is none.
  public var value: Value? { isGone ? nil : fetched?.value ?? stored?.value }
}

/// A source behind a cache: anything that answers a question in its own time, a server, a database,
/// a file.
///
/// ```swift
/// let source = CacheSource<[UInt8]>(retry: RetryPolicy(attempts: 3)) { request in
///   .value(try await server.page(request.key.text), maxAge: .seconds(60))
/// }
/// let read = try await pages.read("home", .staleWhileRevalidate, from: source)
/// ```
public struct CacheSource<Value: Sendable>: Sendable {
  /// Asks the source; may throw, and should heed cancellation.
  public var fetch: @Sendable (SourceRequest) async throws -> Fetched<Value>
  /// How it is asked again where that fails.
  public var retry: RetryPolicy
  /// For how long what is valid no more serves where the source fails; nil for however long.
  public var staleIfError: Duration?
  /// Whether the source can be reached now, as far as anybody knows. It is asked before the source
  /// is, by every policy, and must answer at once.
  public var isOnline: @Sendable () -> Bool
  /// How long it may take to answer once it was asked; then that counts as failed, with `timedOut`,
  /// whether or not it heeds cancellation. Nil waits for as long as somebody reads.
  public var timeout: Duration?
  /// Waits; tests put their own in.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// Waits for the end of `timeout`; likewise.
  package var timer: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// A source.
  /// - Parameters:
  ///   - retry: how it is asked again where it fails; once unless said otherwise.
  ///   - staleIfError: for how long what is valid no more serves where it fails.
  ///   - timeout: how long it may take to answer; nil for as long as somebody reads.
  ///   - isOnline: whether it can be reached now; where not, no policy asks.
  ///   - fetch: asks it.
  public init(
    retry: RetryPolicy = RetryPolicy(), staleIfError: Duration? = nil,
    timeout: Duration? = .seconds(60),
    isOnline: @escaping @Sendable () -> Bool = { true },
    fetch: @escaping @Sendable (SourceRequest) async throws -> Fetched<Value>
  ) {
    self.retry = retry
    self.staleIfError = staleIfError
    self.timeout = timeout
    self.isOnline = isOnline
    self.fetch = fetch
  }
}
