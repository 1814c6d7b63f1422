public import Tidemark
package import TidemarkEngine
internal import TidemarkSyncProtocol

/// The program's own back end as the remote end: one request for each change, such as a `PUT` of
/// a REST interface, and one for what others have changed.
///
/// ```swift
/// let peer = RequestPeer(named: "https://api.example.org/notes") { change in
///   try await api.send(change)
/// } fetch: { token in
///   try await api.changes(since: token)
/// }
/// ```
/// Such a back end numbers no batches, so a change arrives **at least once**, never lost: what was
/// under way when a program died, or when an answer was lost, is sent again with the same
/// idempotency key, and the back end must answer it as before instead of doing it again. The peer
/// keeps nothing on disk: what was answered is in the store's log, and after a restart the store
/// sends the batch again of which it has no answers. That a back end was restored from a backup is
/// not noticed.
///
/// Failures that the closures throw count as passing: ``PeerError`` as what it says, anything else
/// as `unavailable`. One that a single change meets holds up that change only. What will never pass
/// is to be returned, as ``RequestOutcome/rejected(_:)``.
public final class RequestPeer: Peer {
  /// Sends one change.
  public typealias Send = @Sendable (RequestChange) async throws -> RequestOutcome
  /// Gives what has changed since a token; nil for everything. A token that the back end does not
  /// know any more is to be thrown as `PeerError(.cursorGone)`.
  public typealias Fetch = @Sendable (_ token: String?) async throws -> RequestPage
  /// Gives what a key holds, which the back end calls so; nil for what has no alias.
  public typealias Read = @Sendable (_ key: Key, _ alias: Alias?) async throws -> RequestState
  /// Makes the key of what the back end has under an alias of which nobody here has heard.
  public typealias NewKey = @Sendable (_ alias: Alias, _ content: SyncContent) throws -> Key

  /// How a back end is spoken to.
  public struct Options: Sendable, Hashable {
    /// Most changes in one batch: the store notes down what became of them batch by batch.
    public var changesPerBatch: Int
    /// How many changes are sent at a time. With more than one they may arrive in any order,
    /// though never two of one key.
    public var parallel: Int
    /// How often a pull that waits asks.
    public var pollInterval: Duration
    /// Whether a list that is begun without a token has everything that is there: then what it
    /// lacks after a token has expired goes here, too. A list that names what is gone, or begins
    /// somewhere, need not say so; without it what has gone meanwhile stays here.
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
  ///   - name: tells it from others, such as its address. With another name everything counts as
  ///     unsent.
  ///   - options: how it is spoken to.
  ///   - send: sends one change.
  ///   - fetch: gives what others have changed; without it the store only sends.
  ///   - read: gives what a key holds, which is asked for after a conflict; without it `fetch` is
  ///     asked for everything then, and without both a conflict counts as rejected.
  ///   - newKey: makes the key of what others have created, where `fetch` gives only the alias; by
  ///     default the key is the alias. It must not be a key that has another alias, and the same
  ///     alias must always give the same key: for an object of a collection that of the id in its
  ///     content, since an object under another id's key cannot be read.
  public convenience init(
    named name: String, options: Options = Options(), send: @escaping Send, fetch: Fetch? = nil,
    read: Read? = nil, newKey: @escaping NewKey = { alias, _ in Key(alias.bytes) }
  ) {
    self.init(
      named: name, options: options, clock: SystemClock(), send: send, fetch: fetch, read: read,
      newKey: newKey)
  }

  /// The same with a clock of one's own, so that simulations repeat.
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

  /// No numbers and no waiting; sums where lists have everything.
  public var capabilities: PeerCapabilities {
    PeerCapabilities(
      limits: SyncLimits(changes: options.changesPerBatch), canWait: false, isNumbered: false,
      hasDigest: options.listsEverything && fetch != nil && !PlantedSyncBug.isOn(.expiryIgnored))
  }

  /// Makes the caller's cursor the beginning of what this peer goes on from.
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

  /// Runs a closure of the program's.
  func ask<R>(_ body: () async throws -> R) async throws -> R {
    do { return try await body() } catch let error as PeerError {
      throw error
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      // A library may have an error of its own for what was cancelled.
      try Task.checkCancellation()
      throw PeerError(.unavailable, "\(error)")
    }
  }
}
