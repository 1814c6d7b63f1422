internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// A replica as simple as can be: it sends batches in their order until the mark has passed them,
/// holds what pages tell, and compares everything where it is told that its cursor is gone.
struct ClusterReplica {
  enum Step { case hello, compare, fetch, ready }

  let id: ReplicaID
  var step = Step.hello
  /// All of its batches, in their order, and how many of them the feed has, as far as it knows.
  private(set) var batches: [PushRequest] = []
  private(set) var known = 0
  private var sequence: UInt64 = 0
  private var hasResynced = false
  private var range = FeedRange(epochs: [], head: 0)
  private var cursor = FeedPosition.beginning
  /// As far as anything is known of the feed: values are newer than the sums they come after.
  private var furthest = FeedPosition.beginning
  /// What its pages have told, with the values.
  private(set) var state: [[UInt8]: (value: [UInt8], position: FeedPosition)] = [:]
  private var keysToFetch: [[UInt8]] = []

  init(_ index: Int) { id = ReplicaID(padding: [UInt8(index + 1)]) }

  /// Whether the feed has all of its batches.
  var isSent: Bool { known == batches.count }

  /// Its next call.
  mutating func next(_ generator: inout SeededGenerator, writes: Bool) -> WireMessage {
    switch step {
    case .hello:
      return .helloRequest(
        HelloRequest(replica: id, cursor: cursor, hasResynced: hasResynced))
    case .compare: return .digestRequest(DigestRequest(replica: id))
    case .fetch: return .valuesRequest(ValuesRequest(replica: id, keys: keysToFetch))
    case .ready: break
    }
    if isSent, writes, generator.chance(0.5) { write(&generator) }
    guard !isSent else {
      let most = writes ? 1 + generator.int(below: 6) : 100
      return .pullRequest(
        PullRequest(replica: id, after: cursor, limits: SyncLimits(changes: most)))
    }
    batches[known].knownHead = range.headPosition
    return .pushRequest(batches[known])
  }

  private mutating func write(_ generator: inout SeededGenerator) {
    let number = UInt64(batches.count + 1)
    let changes = (0..<1 + generator.int(below: 2)).map { _ in
      let key: [UInt8] = [UInt8(ascii: "a") + UInt8(generator.int(below: 6))]
      sequence += 1
      let base: ChangeBase = state[key].map { ChangeBase.position($0.position) } ?? .absent
      let isDelete = state[key] != nil && generator.chance(0.3)
      return PushedChange(
        sequence: sequence, kind: isDelete ? .delete : .put, key: key,
        content: SyncContent(value: isDelete ? [] : Array("\(id.bytes[0]) \(sequence)".utf8)),
        base: base, commitTime: generator.next() >> 20)
    }
    batches.append(
      PushRequest(
        replica: id, number: number, batchID: BatchID(number << 8 | UInt64(id.bytes[0])),
        previousBatchID: batches.last?.batchID ?? BatchID.none, changes: changes))
  }

  /// A batch that was sent at some time and is still under way.
  func late(_ generator: inout SeededGenerator) -> PushRequest? {
    batches.isEmpty ? nil : batches[generator.int(below: batches.count)]
  }

  // MARK: Answers

  mutating func receive(_ answer: WireMessage) throws {
    switch answer {
    case .helloAnswer(let answer):
      range = answer.range
      try take(answer.mark)
      hasResynced = false
      let isLost = !range.contains(cursor) || !range.contains(furthest)
      step = answer.isLeaseExpired || isLost ? .compare : .ready
    case .pushAnswer(let answer):
      range = answer.range
      try take(answer.mark)
    case .pullAnswer(let answer):
      guard answer.range.contains(answer.cursor),
        answer.entries.allSatisfy({ answer.range.contains($0.position) })
      else { throw BrokenPromise("a page tells of what is not in its range") }
      guard answer.range.contains(furthest) else {
        step = .compare
        return
      }
      for entry in answer.entries { try take(entry) }
      cursor = answer.cursor
      // An entry is left out where a later one of its key follows: both may be lost by then.
      if furthest.offset < answer.range.head { furthest = answer.range.headPosition }
      range = answer.range
      try take(answer.mark)
    case .digestAnswer(let answer):
      guard case .keys(let keys)? = answer.parts.first?.content else {
        throw BrokenPromise("a few keys are not told one by one")
      }
      cursor = answer.position
      state = [:]
      keysToFetch = keys.map(\.key)
      step = .fetch
    case .valuesAnswer(let answer):
      // An old primary, or a restored one, may not have come as far as the sums.
      guard answer.range.contains(cursor) else {
        step = .compare
        return
      }
      for entry in answer.entries where entry.kind == .put {
        state[entry.key] = (entry.content.value, entry.position)
      }
      furthest = answer.range.headPosition
      hasResynced = true
      step = .hello
    default: throw BrokenPromise("an answer to no call")
    }
  }

  /// A call has failed.
  mutating func fail(_ error: PeerError) throws {
    switch error.kind {
    case .cursorGone: step = .compare
    case .leaseExpired: step = .compare
    case .busy, .unavailable: if step == .ready { step = .hello }
    default: throw BrokenPromise("unexpected: \(error.kind) \(error.message)")
    }
  }

  private mutating func take(_ mark: ReplicaMark) throws {
    let number = Int(mark.number)
    guard number <= batches.count, number == 0 || batches[number - 1].batchID == mark.batchID
    else { throw BrokenPromise("the mark is of a batch that was never sent") }
    known = number
  }

  private mutating func take(_ entry: FeedEntry) throws {
    var (key, value) = (entry.key, entry.content.value)
    var isPut = entry.kind == .put
    if entry.kind == .own {
      let own = batches.lazy.flatMap(\.changes).first { $0.sequence == entry.operation.sequence }
      guard let own else { throw BrokenPromise("an own entry that was never sent") }
      (key, value, isPut) = (own.key, own.content.value, own.kind == .put)
    }
    state[key] = isPut ? (value: value, position: entry.position) : nil
  }
}
