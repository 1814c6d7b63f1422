public import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// A peer that is the program's own back end: one request for each change, such as a `PUT` of a
/// REST API, and one for the changes of others.
///
/// ```swift
/// let peer = RequestPeer(named: "https://api.example.org/notes") { change in
///   try await api.send(change)
/// } fetch: { token in
///   try await api.changes(since: token)
/// }
/// ```
/// Such a back end has no numbered batches, so a change is delivered **at least once**: a change in
/// flight when the program died, or whose answer was lost, is sent again with the same idempotency
/// key, and the back end must repeat its answer instead of applying it again. The peer stores
/// nothing: outcomes are in the store's log, and after a restart the store sends the batch again
/// that has none. A back end that was restored from a backup is not noticed.
///
/// Errors that the closures throw count as transient: a ``PeerError`` by its kind, any other as
/// `unavailable`. An error on a single change delays only that change. A permanent failure must be
/// returned, as ``RequestOutcome/rejected(_:)``.
public final class RequestPeer: Peer {
  /// Sends one change.
  public typealias Send = @Sendable (RequestChange) async throws -> RequestOutcome
  /// Returns the changes since a token, or from the beginning for nil. It must throw
  /// `PeerError(.cursorGone)` for a token that the back end does not know any more.
  public typealias Fetch = @Sendable (_ token: String?) async throws -> RequestPage
  /// Returns what a key holds at the back end; the alias is nil where the key has none.
  public typealias Read = @Sendable (_ key: Key, _ alias: Alias?) async throws -> RequestState
  /// Makes the key of a record with an alias that the store does not know.
  public typealias NewKey = @Sendable (_ alias: Alias, _ content: SyncContent) throws -> Key

  /// How a back end is called.
  public struct Options: Sendable, Hashable {
    /// Most changes in one batch: the store stores outcomes once for each batch.
    public var changesPerBatch: Int
    /// How many requests are in flight at a time. With more than one, changes may arrive in any
    /// order, except those of one key.
    public var parallel: Int
    /// The interval at which a pull that waits polls.
    public var pollInterval: Duration
    /// Whether a list from the beginning (without token) has all records. Then, after a token has
    /// expired, records that the list lacks are deleted in the store. Not needed for lists that
    /// report all deletes; without it, deletes missed by an expired token are not noticed.
    public var listsEverything: Bool

    /// Options.
    public init(
      changesPerBatch: Int = 64, parallel: Int = 1, pollInterval: Duration = .seconds(30),
      listsEverything: Bool = false
    ) {
      self.listsEverything = listsEverything
      self.changesPerBatch = min(max(changesPerBatch, 1), SyncLimits().changes)
      self.parallel = max(parallel, 1)
      self.pollInterval = max(pollInterval, .milliseconds(1))
    }
  }

  let options: Options
  let places: RequestPlaces
  let send: Send
  let fetch: Fetch?
  let read: Read?
  let newKey: NewKey
  let state: Lock<RequestMemory>

  /// A back end.
  /// - Parameters:
  ///   - name: identifies the back end, such as its address. Under another name everything counts
  ///     as unsent.
  ///   - options: how it is called.
  ///   - send: sends one change.
  ///   - fetch: returns the changes of others; without it the store only sends.
  ///   - read: returns what a key holds, after a conflict; without it `fetch` is called for
  ///     everything then, and without both a conflict counts as rejected.
  ///   - newKey: makes the key of a record that others have created, where `fetch` gives only its
  ///     alias; by default the key is the alias. It must not return a key that has another alias,
  ///     and always the same key for an alias. For an object of a collection the key must be that
  ///     of the id in its content, since an object under another id's key cannot be read.
  public convenience init(
    named name: String, options: Options = Options(), send: @escaping Send, fetch: Fetch? = nil,
    read: Read? = nil, newKey: @escaping NewKey = { alias, _ in Key(alias.bytes) }
  ) {
    self.init(
      named: name, options: options, clock: SystemClock(), send: send, fetch: fetch, read: read,
      newKey: newKey)
  }

  /// The same with a given clock, so that simulations are repeatable.
  package init(
    named name: String, options: Options, clock: any WallClock, send: @escaping Send,
    fetch: Fetch?, read: Read?, newKey: @escaping NewKey
  ) {
    state = Lock(RequestMemory(clock: clock))
    self.options = options
    places = RequestPlaces(name: name)
    self.send = send
    self.fetch = fetch
    self.read = read
    self.newKey = newKey
  }

  /// No numbered batches and no long poll; digests where lists have everything.
  public var capabilities: PeerCapabilities {
    PeerCapabilities(
      limits: SyncLimits(changes: options.changesPerBatch), canWait: false, isNumbered: false,
      hasDigest: options.listsEverything && fetch != nil && !PlantedSyncBug.isOn(.expiryIgnored))
  }

  /// Begins a session: positions after the caller's cursor are assigned from here on.
  public func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    try state.withLock { (memory: inout RequestMemory) throws in
      try memory.begin(request, canFetch: fetch != nil)
      return HelloAnswer(
        feed: places.feed, range: places.range(head: memory.head),
        mark: memory.marks[request.replica] ?? ReplicaMark(),
        time: memory.clock.now().sinceEpoch, limits: capabilities.limits)
    }
  }

  /// Further calls fail.
  public func close() async { state.withLock { $0.isClosed = true } }

  /// Runs one of the program's closures, and turns its errors into ``PeerError``.
  func ask<R>(_ body: () async throws -> R) async throws -> R {
    do { return try await body() } catch let error as PeerError {
      throw error
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      // A library may throw another error than `CancellationError` when it is cancelled.
      try Task.checkCancellation()
      throw PeerError(.unavailable, "\(error)")
    }
  }
}
