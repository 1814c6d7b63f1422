internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The state of a ``RequestPeer``, which makes a peer of a REST back end. In memory only: whatever
/// is lost is asked for or sent again.
struct RequestMemory: Sendable {
  /// The batch in flight, of which some changes have an answer.
  struct Partial: Sendable {
    var number: UInt64
    var batchID: BatchID
    /// By change.
    var verdicts: [PushVerdict?]
    /// By change, the aliases of those that were applied, if the back end gives aliases.
    var aliases: [Int: KeyAlias] = [:]
    /// By change, how long those wait that get the verdict `aborted` and are sent in a later batch.
    var later: [Int: Duration] = [:]
    /// The changes in `later` on which the back end has failed, and the last failure.
    var faulty: Set<Int> = []
    var fault: PeerError?
  }

  /// A page of the back end's list, whose entries are returned by several pulls.
  struct Window: Sendable {
    var replica: ReplicaID
    var scope: SyncScope
    /// The offset of the cursor before them.
    var start: UInt64
    var entries: [FeedEntry]
    /// The offset of the cursor after them.
    var end: UInt64
  }

  /// Bounds of what is kept in memory.
  private static let mostMarks = 64
  private static let mostKeys = 4_096
  private static let mostTokens = 64

  /// The clock of `time` in hello's answers.
  let clock: any WallClock

  init(clock: any WallClock) { self.clock = clock }

  var isClosed = false
  private var hasBegun = false
  /// The last offset that was assigned.
  var head: UInt64 = 0
  private(set) var marks: [ReplicaID: ReplicaMark] = [:]
  var partial: [ReplicaID: Partial] = [:]
  /// The replicas with a push in progress.
  var pushing: Set<ReplicaID> = []
  /// How often the back end has failed on a change.
  private var faults: [OperationID: Int] = [:]
  var window: Window?
  /// The fingerprints of all records of the back end, during a caller's comparison by digest.
  var listing: Listing?
  /// Detects repeated tokens in the list that is being read.
  var walk = TokenWalk()
  /// The aliases of records that lists have reported as deleted.
  private var gone: Set<KeyAlias> = []
  /// The back end's tokens by the offset of the cursor that each belongs to, ascending.
  private(set) var tokens: [(offset: UInt64, token: String)] = []
  /// By key, what the back end holds by its answers with a conflict.
  private(set) var current: [[UInt8]: RequestState] = [:]
  /// The keys of `current` that were returned to the caller, who may ask again until its next push.
  private var told: Set<[UInt8]> = []
  /// By key, the last change that was applied, to recognise it in a list without idempotency keys,
  /// and the alias in its answer, which the store may not have stored.
  private var sent: [[UInt8]: (change: RequestChange, state: RequestState, alias: KeyAlias?)] = [:]

  func checkOpen() throws(PeerError) {
    guard !isClosed else { throw PeerError(.unavailable, "the peer is closed") }
  }

  /// Assigns an offset: an even one to another writer's version, else an odd one.
  mutating func nextOffset(isOfOther: Bool = false) -> UInt64 {
    head += RequestPositions.isOfOther(head + 1) == isOfOther ? 1 : 2
    return head
  }

  /// Begins a session: assigns offsets after a caller's cursor from here on. If there may be
  /// changes to fetch, the head is put after the cursor, so that the caller pulls.
  mutating func begin(_ request: HelloRequest, canFetch: Bool) throws(PeerError) {
    try checkOpen()
    // A back end stores no marks (a replica's last batch, with verdicts), so the caller's is right.
    if request.mark.number > marks[request.replica]?.number ?? 0 {
      setMark(request.mark, of: request.replica)
    }
    let cursor = request.cursor.offset
    if !hasBegun || cursor > head {
      guard max(cursor, request.furthest.offset) < UInt64.max / 2 else {
        throw PeerError(.malformed, "the cursor makes no sense")
      }
      hasBegun = true
      // After all positions that the caller knows, and by a random distance, so that a copied or
      // restored store does not get an offset for two versions.
      head = max(head, cursor, request.furthest.offset)
      head += UInt64.random(in: 1...RequestPositions.stride)
      if let token = String(validating: request.resumption, as: UTF8.self), !token.isEmpty {
        tokens = [(cursor, token)]
      }
    } else if canFetch, cursor == head {
      head += 1
    }
  }

  mutating func setMark(_ mark: ReplicaMark, of replica: ReplicaID) {
    if marks[replica] == nil, marks.count >= Self.mostMarks, let other = marks.keys.first {
      marks[other] = nil
    }
    marks[replica] = mark
  }

  /// The back end's token for a cursor at an offset; nil for the beginning.
  func token(at offset: UInt64) -> String? {
    tokens.last { $0.offset <= offset }?.token
  }

  mutating func note(_ token: String, at offset: UInt64) {
    tokens.removeAll { $0.offset >= offset }
    tokens.append((offset, token))
    if tokens.count > Self.mostTokens { tokens.removeFirst(tokens.count - Self.mostTokens) }
  }

  mutating func noteGone(_ page: RequestPage) {
    for change in page.changes {
      guard let alias = change.alias else { continue }
      if change.state != .absent {
        gone.remove(alias)
      } else {
        if gone.count >= Self.mostKeys { gone = [] }
        gone.insert(alias)
      }
    }
  }

  /// Whether a list has reported an alias's record as deleted. If a create is answered with this
  /// alias, the answer may be a repeated one, of before the delete.
  func isGone(_ alias: KeyAlias) -> Bool { gone.contains(alias) }

  func hasFailed(on operation: OperationID) -> Bool { faults[operation] != nil }

  /// Puts changes off on which the back end has failed more than once, or was busy: with a pause
  /// that doubles each time, or as long as the back end has asked for.
  /// - Parameter isOutage: whether the whole batch is retried; then a first failure is not put off.
  /// - Returns: the indices of the others, to be sent again at once.
  mutating func noteFaults(
    _ faults: [(operation: OperationID, index: Int, error: PeerError)], isOutage: Bool
  ) -> [Int] {
    var fresh: [Int] = []
    for (operation, index, error) in faults {
      if self.faults[operation] == nil, self.faults.count >= Self.mostKeys { self.faults = [:] }
      let count = self.faults[operation] ?? 0
      self.faults[operation] = count + 1
      guard count > 0 || error.kind == .busy && !isOutage else {
        fresh.append(index)
        continue
      }
      let rest = min(Self.firstRest * (1 << min(max(count, 1) - 1, 16)), Self.longestRest)
      partial[operation.replica]?.later[index] = max(rest, error.retryAfter ?? .zero)
      partial[operation.replica]?.faulty.insert(index)
      partial[operation.replica]?.fault = error
    }
    return fresh
  }

  mutating func forgetFaults(on operation: OperationID) { faults[operation] = nil }

  private static let firstRest = Duration.seconds(10)
  /// As long as the store's backoff after an outage, which one change's failures may be.
  private static let longestRest = Duration.seconds(300)

  mutating func note(_ state: RequestState?, heldBy key: [UInt8]) {
    if state != nil, current[key] == nil, current.count >= Self.mostKeys { current = [:] }
    current[key] = state
    told.remove(key)
  }

  mutating func tell(_ keys: [[UInt8]]) {
    for key in keys where current[key] != nil { told.insert(key) }
  }

  /// Forgets the states returned to the caller: a push shows that it has stored them.
  mutating func forgetTold() {
    for key in told { current[key] = nil }
    told = []
  }

  mutating func note(_ change: RequestChange, _ alias: KeyAlias?) {
    let key = change.key.bytes
    if sent[key] == nil, sent.count >= Self.mostKeys { sent = [:] }
    sent[key] = (change, change.kind == .put ? .value(change.content) : .absent, alias)
  }

  /// - Parameter known: the alias that the store has; nil where it may not have stored one yet.
  mutating func alias(ofKey key: [UInt8], _ known: KeyAlias?, _ replica: ReplicaID) -> KeyAlias? {
    if known != nil { forgetAlias(ofKey: key) }
    guard let last = sent[key], last.change.operation.replica == replica else { return known }
    return known ?? last.alias
  }

  /// Forgets an alias that the store has by now, or whose record is gone.
  mutating func forgetAlias(ofKey key: [UInt8]) { sent[key]?.alias = nil }

  /// The operation with which this store made a change that the back end lists; nil for another
  /// writer's, and for one that was sent before the program was started.
  mutating func own(
    _ change: RequestPage.Change, ofKey key: [UInt8], of replica: ReplicaID
  ) -> OperationID? {
    guard let last = sent[key], last.change.operation.replica == replica else { return nil }
    let isSame =
      change.idempotencyKey.map { $0.lowercased() == last.change.idempotencyKey }
      ?? last.state.isSame(as: change.state)
    if isSame { return last.change.operation }
    // Another writer has changed the key: the same content after that is not this store's change.
    sent[key] = nil
    return nil
  }
}

extension RequestState {
  /// Whether both give a key the same value and labels.
  func isSame(as other: RequestState) -> Bool {
    switch (self, other) {
    case (.absent, .absent): true
    case (.value(let a, _), .value(let b, _)): a.value == b.value && a.labelSet == b.labelSet
    default: false
    }
  }
}
