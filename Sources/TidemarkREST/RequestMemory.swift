internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// The memory of a ``RequestPeer`` while the program runs. All of it may be lost.
struct RequestMemory: Sendable {
  /// A batch of which some changes have an answer.
  struct Partial: Sendable {
    var number: UInt64
    var batchID: BatchID
    /// By change.
    var verdicts: [Verdict?]
    /// The aliases of those that were taken, as far as the back end has ids of its own.
    var aliases: [Int: Alias] = [:]
    /// How long changes rest that are not sent any more with this batch.
    var later: [Int: Duration] = [:]
    /// The changes on which the back end has failed, and how it did last.
    var faulty: Set<Int> = []
    var fault: PeerError?
  }

  /// Entries that the back end gave and that were not all handed on yet.
  struct Window: Sendable {
    var replica: ReplicaID
    var scope: SyncScope
    /// The cursor that they were asked for with.
    var start: UInt64
    var entries: [FeedEntry]
    /// The cursor behind them.
    var end: UInt64
  }

  /// Bounds: what is dropped is asked for or sent again.
  private static let mostMarks = 64
  private static let mostKeys = 4_096
  private static let mostTokens = 64

  /// The clock that `hello` answers are stamped with.
  let clock: any WallClock

  init(clock: any WallClock) { self.clock = clock }

  var isClosed = false
  private var hasBegun = false
  /// The last offset given out.
  var head: UInt64 = 0
  private(set) var marks: [ReplicaID: ReplicaMark] = [:]
  var partial: [ReplicaID: Partial] = [:]
  /// The replicas that are pushing right now.
  var pushing: Set<ReplicaID> = []
  /// How often the back end has failed on a change.
  private var faults: [OperationID: Int] = [:]
  var window: Window?
  /// All that the back end has, while a caller compares what it holds with it.
  var listing: Listing?
  /// The tokens of the list that is read.
  var walk = TokenWalk()
  /// The aliases of tombstones that lists had.
  private var gone: Set<Alias> = []
  /// Ascending by offset.
  private(set) var tokens: [(offset: UInt64, token: String)] = []
  /// The contents of keys that conflicts told.
  private(set) var current: [[UInt8]: RequestState] = [:]
  /// The keys of which the caller was told. It asks again when it could not take that.
  private var told: Set<[UInt8]> = []
  /// The last change of each key that was taken, to know it when it comes back.
  private(set) var sent: [[UInt8]: (change: RequestChange, state: RequestState)] = [:]

  /// The names that the back end has given keys, as of answers that the store may not have taken.
  private var named: [[UInt8]: (replica: ReplicaID, alias: Alias)] = [:]

  func checkOpen() throws(PeerError) {
    guard !isClosed else { throw PeerError(.unavailable, "the peer is closed") }
  }

  mutating func nextOffset(isOfOther: Bool = false) -> UInt64 {
    head += RequestPlaces.isOfOther(head + 1) == isOfOther ? 1 : 2
    return head
  }

  /// Goes on behind a caller's cursor. Where there may be something new there, the head is told to
  /// be further, so that the caller asks.
  mutating func begin(_ request: HelloRequest, canFetch: Bool) throws(PeerError) {
    try checkOpen()
    // The numbers are the caller's alone, who sends the batch under way again as it was.
    if request.mark.number > marks[request.replica]?.number ?? 0 {
      setMark(request.mark, of: request.replica)
    }
    let cursor = request.cursor.offset
    if !hasBegun || cursor > head {
      guard max(cursor, request.furthest.offset) < UInt64.max / 2 else {
        throw PeerError(.malformed, "the cursor makes no sense")
      }
      hasBegun = true
      // In a store that is copied, or restored from a backup, what came there since has other
      // places; and all that the caller has heard of lies before the head.
      head = max(head, cursor, request.furthest.offset)
      head += UInt64.random(in: 1...RequestPlaces.stride)
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

  /// The token that the back end gave with the entries up to an offset; nil for the beginning.
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

  /// Whether a list had a tombstone for an alias. A create that is answered with it may have been
  /// answered before, and its record deleted since.
  func isGone(_ alias: Alias) -> Bool { gone.contains(alias) }

  func hasFailed(on operation: OperationID) -> Bool { faults[operation] != nil }

  /// Lets changes rest on which the back end has failed more than once, or that it has put off:
  /// longer each time, or as long as the back end has asked for.
  /// - Parameter isOutage: whether all wait, so that none need rest that fails for the first time.
  /// - Returns: the others.
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
  /// As long as after a failure of the whole back end: a fault of one change looks the same.
  private static let longestRest = Duration.seconds(300)

  func alias(ofKey key: [UInt8], _ replica: ReplicaID) -> Alias? {
    guard let found = named[key], found.replica == replica else { return nil }
    return found.alias
  }

  mutating func note(_ alias: Alias?, ofKey key: [UInt8], _ replica: ReplicaID) {
    if alias != nil, named[key] == nil, named.count >= Self.mostKeys { named = [:] }
    named[key] = alias.map { (replica, $0) }
  }

  mutating func note(_ state: RequestState?, heldBy key: [UInt8]) {
    if state != nil, current[key] == nil, current.count >= Self.mostKeys { current = [:] }
    current[key] = state
    told.remove(key)
  }

  mutating func tell(_ keys: [[UInt8]]) {
    for key in keys where current[key] != nil { told.insert(key) }
  }

  /// Forgets what was told: who pushes has taken it.
  mutating func forgetTold() {
    for key in told { current[key] = nil }
    told = []
  }

  mutating func note(_ change: RequestChange) {
    let key = change.key.bytes
    if sent[key] == nil, sent.count >= Self.mostKeys { sent = [:] }
    sent[key] = (change, change.kind == .put ? .value(change.content) : .absent)
  }

  /// The own operation that gave a key what it holds at the back end, as far as that can be told
  /// by what was sent since the program was started.
  mutating func own(
    _ change: RequestPage.Change, ofKey key: [UInt8], of replica: ReplicaID
  ) -> OperationID? {
    guard let last = sent[key], last.change.operation.replica == replica else { return nil }
    let isSame =
      change.idempotencyKey.map { $0.lowercased() == last.change.idempotencyKey }
      ?? last.state.isSame(as: change.state)
    if isSame { return last.change.operation }
    // Should the same come again after this, it is somebody's who has put it back.
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
