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
  /// Sends one change to the back end, and returns the back end's decision.
  public typealias Send = @Sendable (RequestChange) async throws -> RequestOutcome
  /// Returns the changes since a token, or from the beginning for nil. It must throw
  /// `PeerError(.cursorGone)` for a token that the back end does not know any more.
  public typealias Fetch = @Sendable (_ token: String?) async throws -> RequestPage
  /// Returns the current content of a key at the back end. The alias is nil if the back end has
  /// given the key none.
  public typealias Read = @Sendable (_ key: Key, _ alias: KeyAlias?) async throws -> RequestState
  /// Returns the key for a record that the back end knows by an alias and the store does not know
  /// yet.
  public typealias NewKey = @Sendable (_ alias: KeyAlias, _ content: SyncContent) throws -> Key

  /// How a ``RequestPeer`` calls its back end: batch size, parallel requests and polling.
  public struct Options: Sendable, Hashable {
    /// The most changes of one batch; the default is 64. The store saves the outcomes once for each
    /// batch.
    public var changesPerBatch: Int
    /// How many requests are in flight at a time; the default is 1. With more than one, changes may
    /// reach the back end in any order, except changes of one key.
    public var parallel: Int
    /// How often a pull that waits for changes asks the back end. The default is 30 seconds.
    public var pollInterval: Duration
    /// Whether a list from the beginning (without token) has all records. Then, after a token has
    /// expired, records that the list lacks are deleted in the store. Not needed for lists that
    /// report all deletes; without it, deletes missed by an expired token are not noticed.
    public var listsEverything: Bool

    /// Creates the options of a ``RequestPeer``; every parameter has a default.
    /// - Parameters:
    ///   - changesPerBatch: the most changes of one batch.
    ///   - parallel: how many requests are in flight at a time.
    ///   - pollInterval: how often a waiting pull asks the back end.
    ///   - listsEverything: whether a list without token has all records.
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
  let positions: RequestPositions
  let send: Send
  let fetch: Fetch?
  let read: Read?
  let newKey: NewKey
  let state: Lock<RequestMemory>

  /// Creates a peer for the program's own back end from closures that call it.
  /// - Parameters:
  ///   - name: identifies the back end, such as its address. Under another name everything counts
  ///     as unsent.
  ///   - options: how the back end is called.
  ///   - send: sends one change.
  ///   - fetch: returns the changes of others. Without it the store only sends.
  ///   - read: returns the content of a key after a conflict. Without it the peer calls `fetch` for
  ///     everything; without both a conflict counts as rejected.
  ///   - newKey: returns the key of a record that others have created, if `fetch` gives only its
  ///     alias; by default the key is the alias. It must not return a key that has another alias,
  ///     and must always return the same key for an alias. For an object of a collection it must
  ///     return the key of the id in the object's content, since an object under another id's key
  ///     cannot be read.
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
    positions = RequestPositions(name: name)
    self.send = send
    self.fetch = fetch
    self.read = read
    self.newKey = newKey
  }

  /// The capabilities of a back end: no numbered batches and no long poll, and digests if
  /// ``Options/listsEverything`` is set.
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
        feed: positions.feed, range: positions.range(head: memory.head),
        mark: memory.marks[request.replica] ?? ReplicaMark(),
        time: memory.clock.now().sinceEpoch, limits: capabilities.limits)
    }
  }

  /// Closes the peer; further calls fail.
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
