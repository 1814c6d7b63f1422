internal import TidemarkEngine

/// The answer of a ``CacheSource``: a new value, "not modified", or "absent".
public enum FetchedValue<Value: Sendable>: Sendable {
  /// The source sends a value. Labels of nil keep those that the key has, and a `maxAge` of nil
  /// stands for the policy's. Write the attachment to the cache's store before you return it.
  case value(
    Value, hash: [UInt8]? = nil, labels: [EntryLabel]? = nil, maxAge: Duration? = nil,
    attachment: StagedAttachment? = nil)
  /// The cached value, whose hash the request names, is still right; the cache renews its validity.
  case notModified(hash: [UInt8]? = nil, maxAge: Duration? = nil)
  /// The source has no value for the key. No read needs to ask again before `maxAge` has passed.
  case absent(maxAge: Duration = .zero)
}

/// A request to the source of a cache, for the value of one key.
public struct SourceRequest: Sendable, Hashable {
  /// The key to fetch, without the cache's prefix.
  public var key: Key
  /// The validator hash of the cached value. Nil when there is none; then the source must not
  /// answer ``FetchedValue/notModified(hash:maxAge:)``.
  public var hash: [UInt8]?
}

/// The rule by which a read uses the cache and its source. No policy calls the source while
/// ``CacheSource/isOnline`` returns false; the read's error is then `offline`.
public enum ReadPolicy: Sendable, Hashable {
  /// The read returns the cached value at once, and calls the source when the value is stale.
  /// Offline it returns the cached value.
  case staleWhileRevalidate
  /// The read calls the source only when there is no valid cached value. Offline, a stale value
  /// serves under the same rule as when the source fails.
  case cacheFirst
  /// The read calls the source first. The cached value serves when that fails, and offline.
  case networkFirst
  /// As ``networkFirst``, for use after a change of your own, such as a request that has edited the
  /// value. A call that is already under way may have been answered before your change. It is
  /// therefore cancelled, and its readers get the answer to this call.
  case refresh
  /// The read calls the source and never returns the cached value. Offline it returns nothing.
  case networkOnly
  /// The read never calls the source. It returns a value that has been stale for at most
  /// `maxStale`; nil sets no limit.
  case cacheOnly(maxStale: Duration? = nil)
  /// As ``cacheFirst``. Offline the read returns the cached value, however long it has been stale.
  case automatic

  /// Whether the source is asked whatever is there.
  var asksAnyway: Bool {
    switch self {
    case .networkFirst, .refresh, .networkOnly: true
    case .staleWhileRevalidate, .cacheFirst, .cacheOnly, .automatic: false
    }
  }
}

/// The result of a read through a cache: the cached entry, the source's answer, and the error if
/// there was one.
public struct CacheRead<Value: Sendable>: Sendable {
  /// The combination of cached entry and source's answer that a read has found.
  @nonexhaustive
  public enum Kind: Sendable, Hashable {
    /// The cache had a value, and the source has answered.
    case both
    /// The cache had a value; the source was not called, or has failed.
    case storedOnly
    /// The cache had no value, or was not asked, and the source has answered.
    case fetchedOnly
    /// The source says that the key has no value, so the cache has removed its entry.
    case gone
    /// The cache had no value, and the source was not called, or has failed.
    case neither
  }

  /// The entry that was in the cache before the read; nil when there was none, or the policy did
  /// not use it.
  public var stored: CachedEntry<Value>?
  /// The source's answer as an entry; nil when the source has not answered. It is the entry that
  /// the cache keeps, or one that was written during the call. When other news came during the
  /// call, or the answer does not fit, it is the answer itself, which the cache does not keep.
  public var fetched: CachedEntry<Value>?
  /// Whether the source says that the key has no value.
  public var isGone = false
  /// The error of the call to the source, `offline` when it could not be called; nil when it
  /// succeeded or was not needed.
  public var error: (any Error)?

  /// The combination of cached entry and source's answer that the read has found.
  public var kind: Kind {
    if isGone { return .gone }
    if fetched != nil { return stored == nil ? .fetchedOnly : .both }
    return stored == nil ? .neither : .storedOnly
  }

  /// The newest value: the source's, else the cached one. Nil when there is neither, or the source
  /// says that the key has none.
  public var value: Value? { isGone ? nil : fetched?.value ?? stored?.value }
}

/// The source of a cache's values, such as a server, a database or a file: a closure with rules for
/// retries and time limits.
///
/// ```swift
/// let source = CacheSource<[UInt8]>(retry: RetryPolicy(attempts: 3)) { request in
///   .value(try await server.page(request.key.text), maxAge: .seconds(60))
/// }
/// let read = try await pages.read("home", .staleWhileRevalidate, from: source)
/// ```
public struct CacheSource<Value: Sendable>: Sendable {
  /// Fetches the value of a key. The closure may throw, and should end soon when its task is
  /// cancelled.
  public var fetch: @Sendable (SourceRequest) async throws -> FetchedValue<Value>
  /// The rule by which a failed call is repeated; by default it is not.
  public var retry: RetryPolicy
  /// How long a value may have been stale to serve when the source fails; nil for any time.
  public var staleIfError: Duration?
  /// Returns whether the source can be reached now. Every read asks it before it calls the source,
  /// so it must return at once.
  public var isOnline: @Sendable () -> Bool
  /// How long one call of ``fetch`` may take, 60 seconds by default. After that it fails with
  /// `timedOut`, whether or not it heeds cancellation. Nil sets no limit.
  public var timeout: Duration?
  /// Waits; tests put their own in.
  package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
  /// Waits for the end of `timeout`; likewise.
  package var timer: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

  /// Creates a source.
  /// - Parameters:
  ///   - retry: the rule by which a failed call is repeated; by default it is not.
  ///   - staleIfError: how long a value may have been stale to serve when the source fails; nil for
  ///     any time.
  ///   - timeout: how long one call may take; nil sets no limit.
  ///   - isOnline: returns whether the source can be reached now; true by default.
  ///   - fetch: fetches the value of a key.
  public init(
    retry: RetryPolicy = RetryPolicy(), staleIfError: Duration? = nil,
    timeout: Duration? = .seconds(60),
    isOnline: @escaping @Sendable () -> Bool = { true },
    fetch: @escaping @Sendable (SourceRequest) async throws -> FetchedValue<Value>
  ) {
    self.retry = retry
    self.staleIfError = staleIfError
    self.timeout = timeout
    self.isOnline = isOnline
    self.fetch = fetch
  }
}
