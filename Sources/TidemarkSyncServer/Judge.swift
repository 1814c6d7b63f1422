internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decides in the feed's order which changes of a batch apply.
///
/// A change applies if it was made upon what its key holds: upon the entry that gave it, upon
/// nothing where there is nothing, or after an own change that is the key's state still. Of the
/// others the key's policy decides. What earlier changes of the batch did counts for later ones.
struct Judge {
  /// The part of a key's state that counts, as the batch itself has made it, or as the feed has it.
  private struct Held {
    var place: Position
    var isDeleted: Bool
    var operation: OperationID
    var commitTime: UInt64
    /// None where it is deleted.
    var labels: [[UInt8]]
    var attachment: AttachmentID?
    var former: FormerLabels
    /// As ``JudgedBatch/Entry/Kind`` has it.
    var revision: UInt64?
    /// The change that has made it; nil where the feed has it.
    var change: Int?
  }

  /// How often as many changes are looked at as there are, when atomic groups fail.
  private static let rounds = 64

  private let feed: any Feed
  private let request: PushRequest
  private let access: SyncAccess
  private let policies: PolicyTable
  /// The feed's time, as a commit time.
  private let feedTime: UInt64
  /// By change; nil for those that can be judged.
  private let refused: [Rejection?]
  private let labelSets: [[[UInt8]]]

  /// The feed's part: by change, the state of its key; by offset, values that changes may be equal
  /// to, and entries that they were made upon.
  private var states: [FeedState?] = []
  private var values: [UInt64: [UInt8]] = [:]
  private var bases: [UInt64: FeedHead] = [:]
  private var entries: [JudgedBatch.Entry] = []
  /// By key, the last entry that changes it.
  private var latest: [[UInt8]: Int] = [:]
  private var verdicts: [Verdict] = []
  /// By change: how many entries there were before it, and the last of them that changes its key.
  private var before: [(entries: Int, latest: Int?)] = []
  /// Atomic groups of which a change does not apply.
  private var failed: Set<UInt64> = []

  init(
    _ request: PushRequest, feed: any Feed, access: SyncAccess, policies: PolicyTable,
    validators: [SyncValidator]
  ) {
    self.request = request
    self.feed = feed
    self.access = access
    self.policies = policies
    feedTime = min(feed.now.sinceEpoch, (1 << 48) - 1) << 16 | 0xffff
    refused = request.changes.map {
      ChangeCheck.rejection(of: $0, by: request.replica, validators)
    }
    labelSets = request.changes.map { $0.kind == .put ? $0.content.labelSet : [] }
  }

  /// Judges the batch upon the feed as it is now.
  /// - Throws: `limitExceeded` when its atomic groups are too entangled.
  mutating func run() throws(TidemarkError) -> JudgedBatch {
    try look()
    latest.reserveCapacity(request.changes.count)
    entries.reserveCapacity(request.changes.count)
    verdicts.reserveCapacity(request.changes.count)
    before.reserveCapacity(request.changes.count)
    var firsts: [UInt64: Int] = [:]
    for (index, change) in request.changes.enumerated() where change.atomicGroup != 0 {
      firsts[change.atomicGroup] = firsts[change.atomicGroup] ?? index
    }
    var work = 0
    while verdicts.count < request.changes.count {
      work += 1
      guard work <= Self.rounds * (request.changes.count + 64) else {
        throw TidemarkError(
          .limitExceeded, "the batch's atomic groups are too entangled; send fewer at a time")
      }
      let index = verdicts.count
      let group = request.changes[index].atomicGroup
      before.append((entries.count, latest[request.changes[index].key]))
      let verdict = try judge(index)
      if group != 0, !verdict.lets, !failed.contains(group) {
        // None of the group may apply: everything since its first change is judged anew.
        failed.insert(group)
        rewind(to: firsts[group] ?? index)
      } else {
        verdicts.append(verdict)
      }
    }
    return JudgedBatch(
      request: request, entries: entries, verdicts: verdicts, policies: policies.revision)
  }

  /// Asks the feed for everything that the batch is judged upon, in three calls. A change is judged
  /// and put down by one such look: somebody else may write in between.
  private mutating func look() throws(TidemarkError) {
    let changes = request.changes.indices.filter {
      refused[$0] == nil && access.mayReach(key: request.changes[$0].key)
    }
    states = [FeedState?](repeating: nil, count: request.changes.count)
    let found = try feed.states(of: changes.map { request.changes[$0].key })
    for (index, state) in zip(changes, found) { states[index] = state }
    var same: Set<UInt64> = []
    var bases: Set<UInt64> = []
    for index in changes {
      let change = request.changes[index]
      let state = states[index]
      if let state, !state.isDeleted, change.kind == .put,
        state.head.valueLength == change.content.value.count,
        state.head.labels == labelSets[index]
      {
        same.insert(state.position.offset)
      }
      if state?.isDeleted ?? true, case .position(let base) = change.base, base.offset > 0 {
        bases.insert(base.offset)
      }
    }
    values = try feed.values(at: Array(same))
    self.bases = try feed.heads(at: Array(bases))
  }

  /// Takes back what changes from `index` on have done.
  private mutating func rewind(to index: Int) {
    while before.count > index {
      let last = before.removeLast()
      latest[request.changes[before.count].key] = last.latest
      entries.removeLast(entries.count - last.entries)
    }
    verdicts.removeLast(verdicts.count - index)
  }

  // MARK: One change

  private mutating func judge(_ index: Int) throws(TidemarkError) -> Verdict {
    if let rejection = refused[index] { return .rejected(rejection) }
    let change = request.changes[index]
    // The key's content does not matter here: what a verdict says must not depend on that.
    guard access.mayReach(key: change.key) else { return .rejected(Self.outOfScope) }
    let held = held(before: index)
    if let held, !held.isDeleted, !access.reaches(key: change.key, labels: held.labels) {
      return .rejected(Self.outOfScope)
    }
    switch change.kind {
    case .delete:
      guard let held, !held.isDeleted else { return .duplicate(held?.place ?? .beginning) }
    case .put:
      guard access.reaches(key: change.key, labels: labelSets[index]) else {
        return .rejected(Self.outOfScope)
      }
      if let held, !held.isDeleted, isEqual(index, to: held) { return .duplicate(held.place) }
    }
    if change.atomicGroup != 0, failed.contains(change.atomicGroup) {
      return try applies(change, upon: held) ? .aborted : contest(index, held, plans: false)
    }
    if try applies(change, upon: held) { return plan(index, upon: held) }
    return contest(index, held, plans: true)
  }

  /// The state that a change finds at its key; nil for none.
  private func held(before index: Int) -> Held? {
    if let entry = before[index].latest {
      let index = entries[entry].change
      let change = request.changes[index]
      return Held(
        place: MarkRecord.planned(entry), isDeleted: change.kind == .delete,
        operation: OperationID(replica: request.replica, sequence: change.sequence),
        commitTime: min(change.commitTime, feedTime), labels: labelSets[index],
        attachment: change.content.attachment?.engineID, former: entries[entry].former,
        change: index)
    }
    return states[index].map { state in
      let head = state.head
      return Held(
        place: state.position, isDeleted: state.isDeleted, operation: head.operation,
        commitTime: state.commitTime, labels: state.isDeleted ? [] : head.labels,
        attachment: head.attributes.attachment,
        former: head.attributes.former ?? FormerLabels(forgottenThrough: head.offset),
        revision: state.isDeleted ? 0 : state.revision)
    }
  }

  /// Whether a put gives a key what it holds.
  private func isEqual(_ index: Int, to held: Held) -> Bool {
    let content = request.changes[index].content
    guard held.labels == labelSets[index], held.attachment == content.attachment?.engineID else {
      return false
    }
    if let change = held.change { return request.changes[change].content.value == content.value }
    return values[held.place.offset] == content.value
  }

  /// Whether a change was made upon what its key holds.
  private func applies(
    _ change: PushedChange, upon held: Held?
  ) throws(TidemarkError) -> Bool {
    #if TIDEMARK_PLANTED
      if PlantedSyncBug.isOn(.baseIgnored) { return true }
    #endif
    if let held, held.operation.replica == request.replica,
      held.operation.sequence < change.sequence
    {
      return true
    }
    // No writer can know the place of what is only about to be appended.
    if case .position(let base) = change.base, held?.change == nil, held?.place == base {
      return true
    }
    // An absent key and a deleted one are in the same state.
    guard held?.isDeleted ?? true else { return false }
    switch change.base {
    case .absent, .operation, .position(.beginning): return true
    case .position(let base):
      guard let head = bases[base.offset], head.kind == .delete, head.key == change.key else {
        return false
      }
      return try feed.range().position(ofOffset: base.offset) == base
    }
  }

  /// The verdict on a change that does not apply by itself.
  private mutating func contest(_ index: Int, _ held: Held?, plans: Bool) -> Verdict {
    let change = request.changes[index]
    // Nothing is known of what was deleted so long ago that its delete is gone, not even when.
    guard let held else { return .conflict(.beginning) }
    switch policies.policy(for: change.key) {
    case .detect: return .conflict(held.place)
    case .lastWriterWins:
      let time = min(change.commitTime, feedTime)
      let isLater =
        time != held.commitTime
        ? time > held.commitTime : held.operation.replica < request.replica
      guard isLater else {
        if plans, change.kind == .put {
          entries.append(JudgedBatch.Entry(change: index, kind: .loses))
        }
        return .lost(held.place)
      }
      return plans ? plan(index, upon: held) : .aborted
    }
  }

  /// Puts a change down as one that applies.
  private mutating func plan(_ index: Int, upon held: Held?) -> Verdict {
    let entry = entries.count
    var planned = JudgedBatch.Entry(change: index, kind: .applies(upon: 0))
    if let held {
      planned.kind = .applies(upon: held.revision)
      // An entry of the batch has no offset yet.
      planned.former = FormerLabels(
        after: held.former, held.labels, at: held.change == nil ? held.place.offset : 0,
        next: labelSets[index])
    }
    entries.append(planned)
    latest[request.changes[index].key] = entry
    return .applied(MarkRecord.planned(entry))
  }

  private static let outOfScope = Rejection.outOfScope(
    "the authorization does not reach this entry")
}

extension Verdict {
  /// Whether the other changes of an atomic group may apply: this one does, or has already.
  fileprivate var lets: Bool {
    switch self {
    case .applied, .duplicate: true
    default: false
    }
  }
}
