package import Tidemark
internal import TidemarkEngine
package import TidemarkSyncProtocol

/// Decides in the feed's order which changes of a batch apply, and gives each its verdict.
///
/// A change applies if its base is the key's current entry, if it has none and the key is absent or
/// deleted, or if an earlier change of the same replica is current. The others are conflicts, which
/// the key's policy decides. Earlier changes of the batch count for later ones.
package struct ConflictDetector {
  /// How often each change may be judged, on average: a failed atomic group judges many anew.
  private static let rounds = 64

  private let feed: any Feed
  private let request: PushRequest
  private let access: SyncAccess
  private let view: FeedView
  /// The feed's time, as a commit time.
  private let feedTime: UInt64
  /// By change, why it is rejected whatever its key holds; nil for those that must be judged.
  private var refused: [SyncRejection?]

  /// By offset, values of current entries that puts may be equal to, and the entries that are bases
  /// of changes to deleted keys.
  private var values: [UInt64: [UInt8]] = [:]
  private var bases: [UInt64: FeedHead] = [:]
  /// The entries and verdicts of the changes that are judged so far.
  private var judged: DecidedBatch
  /// By key, the index in `judged.entries` of the last entry that changes it.
  private var latest: [[UInt8]: Int] = [:]
  /// By change: how many entries there are before it, the last of them that changes its key, and
  /// how many bytes puts may add from there on.
  private var before: [(entries: Int, latest: Int?, room: Int?)] = []
  private var room: Int?
  /// Atomic groups with a change that does not apply: their other changes are `aborted`.
  private var failed: Set<UInt64> = []

  package init(
    _ request: PushRequest, feed: any Feed, view: FeedView, access: SyncAccess,
    validators: [SyncValidator]
  ) {
    self.request = request
    self.feed = feed
    self.access = access
    self.view = view
    room = view.room
    feedTime = min(view.now, (1 << 48) - 1) << 16 | 0xffff
    let labelSets = request.changes.map { $0.kind == .put ? $0.content.labelSet : [] }
    refused = zip(request.changes, labelSets).map { change, labels in
      // Decided without the key's content: a verdict must not disclose what is out of reach.
      let isWithin =
        change.kind == .put
        ? access.reaches(key: change.key, labels: labels) : access.mayReach(key: change.key)
      return isWithin
        ? ChangeCheck.rejection(of: change, by: request.replica, validators) : Self.outOfScope
    }
    judged = DecidedBatch(request: request, labelSets: labelSets)
  }

  /// Judges the batch against the states of its keys in the view.
  /// - Throws: `limitExceeded` when atomic groups that fail one after the other judge it too often.
  package mutating func run() throws(TidemarkError) -> DecidedBatch {
    try look()
    latest.reserveCapacity(request.changes.count)
    judged.entries.reserveCapacity(request.changes.count)
    judged.verdicts.reserveCapacity(request.changes.count)
    before.reserveCapacity(request.changes.count)
    var firsts: [UInt64: Int] = [:]
    for (index, change) in request.changes.enumerated() where change.atomicGroup != 0 {
      firsts[change.atomicGroup] = firsts[change.atomicGroup] ?? index
    }
    var work = 0
    while judged.verdicts.count < request.changes.count {
      work += 1
      guard work <= Self.rounds * (request.changes.count + 64) else {
        throw TidemarkError(
          .limitExceeded, "the batch's atomic groups are too entangled; send fewer at a time")
      }
      let index = judged.verdicts.count
      let group = request.changes[index].atomicGroup
      before.append((judged.entries.count, latest[request.changes[index].key], room))
      let verdict = judge(index)
      if group != 0, !verdict.isTaken, !failed.contains(group) {
        // None of the group may apply: everything since its first change is judged anew without it.
        failed.insert(group)
        // In the next round nothing is added, and so nothing would be too much.
        if case .rejected(let reason) = verdict { refused[index] = reason }
        rewind(to: firsts[group] ?? index)
      } else {
        judged.verdicts.append(verdict)
      }
    }
    return judged
  }

  /// Reads the values and bases that the batch is judged by, once for the whole batch. What another
  /// replica writes meanwhile is noticed by `append`, which compares the view.
  private mutating func look() throws(TidemarkError) {
    var same: Set<UInt64> = []
    var bases: Set<UInt64> = []
    for (index, state) in view.states.enumerated() where refused[index] == nil {
      let change = request.changes[index]
      if let state, !state.isDeleted, change.kind == .put,
        state.head.valueLength == change.content.value.count,
        state.head.labels == judged.labelSets[index],
        state.fingerprint.map({ $0 == judged.fingerprint(of: index) }) ?? true
      {
        same.insert(state.position.offset)
      }
      if state?.isDeleted ?? true, case .position(let base) = change.base, base.offset > 0 {
        bases.insert(base.offset)
      }
    }
    values = same.isEmpty ? [:] : try feed.values(at: Array(same))
    self.bases = bases.isEmpty ? [:] : try feed.heads(at: Array(bases))
  }

  /// Discards the entries and verdicts of the changes from `index` on.
  private mutating func rewind(to index: Int) {
    while before.count > index {
      let last = before.removeLast()
      latest[request.changes[before.count].key] = last.latest
      room = last.room
      judged.entries.removeLast(judged.entries.count - last.entries)
    }
    judged.verdicts.removeLast(judged.verdicts.count - index)
  }

  // MARK: One change

  private mutating func judge(_ index: Int) -> PushVerdict {
    if let rejection = refused[index] { return .rejected(rejection) }
    let change = request.changes[index]
    let held = held(before: index)
    if let held, !held.isDeleted, !access.reaches(key: change.key, labels: held.head.labels) {
      return .rejected(Self.outOfScope)
    }
    switch change.kind {
    case .delete:
      guard let held, !held.isDeleted else { return .duplicate(held?.position ?? .beginning) }
    case .put:
      if let held, !held.isDeleted, isEqual(index, to: held) { return .duplicate(held.position) }
    }
    let plans = !failed.contains(change.atomicGroup)
    if !applies(index, upon: held), let verdict = contest(index, held, plans: plans) {
      return verdict
    }
    return plans ? plan(index, upon: held) : .aborted
  }

  /// The state of a change's key before it: by the last entry of the batch for the key, or else by
  /// the feed; nil for none.
  private func held(before index: Int) -> FeedState? {
    guard let latest = before[index].latest else { return view.states[index] }
    // An entry of the batch has no offset until it is appended.
    let head = judged.head(
      of: judged.entries[latest], at: 0, previous: 0, received: feedTime)
    return FeedState(head: head, position: MarkRecord.planned(latest), revision: 0)
  }

  /// Whether a put has the value, labels and attachment that its key holds: then it is `duplicate`.
  private func isEqual(_ index: Int, to held: FeedState) -> Bool {
    let content = request.changes[index].content
    guard held.head.labels == judged.labelSets[index],
      held.head.attributes.attachment == content.attachment?.engineID
    else { return false }
    if let latest = before[index].latest {
      return request.changes[judged.entries[latest].change].content.value == content.value
    }
    return values[held.position.offset] == content.value
  }

  /// Whether the base of a change is what its key holds.
  private func applies(_ index: Int, upon held: FeedState?) -> Bool {
    if PlantedSyncBug.isOn(.baseIgnored) { return true }  // a fault that only tests switch on
    let change = request.changes[index]
    if let operation = held?.head.operation, operation.replica == request.replica,
      operation.sequence < change.sequence
    {
      return true
    }
    // No base can be the position of an entry of this batch: those have none yet.
    if case .position(let base) = change.base, before[index].latest == nil, held?.position == base {
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
      return view.range.position(ofOffset: base.offset) == base
    }
  }

  /// The verdict on a change whose base is not current; nil where the policy lets it win. A put
  /// that loses is kept in the feed as history.
  private mutating func contest(_ index: Int, _ held: FeedState?, plans: Bool) -> PushVerdict? {
    let change = request.changes[index]
    // The key has no tombstone any more, so there is no time that the policy could compare.
    guard let held else { return .conflict(.beginning) }
    switch view.policies.policy(for: change.key) {
    case .detect: return .conflict(held.position)
    case .lastWriterWins:
      let time = min(change.commitTime, feedTime)
      let isLater =
        time != held.commitTime
        ? time > held.commitTime : held.head.operation.replica < request.replica
      if isLater { return nil }
      let entry = DecidedBatch.Entry(change: index, kind: .loses)
      if plans, change.kind == .put, takesRoom(for: entry) { judged.entries.append(entry) }
      return .lost(held.position)
    }
  }

  /// Adds the entry of a change that applies, with the labels that its key had: readers by label
  /// learn from them that the key has left.
  private mutating func plan(_ index: Int, upon held: FeedState?) -> PushVerdict {
    let entry = judged.entries.count
    var planned = DecidedBatch.Entry(change: index, kind: .applies(upon: 0))
    if let held {
      let revision = held.isDeleted ? 0 : held.revision
      planned.kind = .applies(upon: before[index].latest == nil ? revision : nil)
      let head = held.head
      planned.former = FormerLabels(
        after: head.attributes.former ?? FormerLabels(forgottenThrough: head.offset), head.labels,
        at: head.offset, next: judged.labelSets[index])
    }
    guard request.changes[index].kind == .delete || takesRoom(for: planned) else {
      return .rejected(Self.overQuota)
    }
    judged.entries.append(planned)
    latest[request.changes[index].key] = entry
    return .applied(MarkRecord.planned(entry))
  }

  /// - Returns: false where the database has too little room left.
  private mutating func takesRoom(for entry: DecidedBatch.Entry) -> Bool {
    guard let left = room else { return true }
    let bytes = judged.head(of: entry, at: 0, previous: 0, received: 0).storedBytes
    guard bytes <= left else { return false }
    room = left - bytes
    return true
  }

  private static let overQuota = SyncRejection(
    code: "quota", message: "the database has no room left; deletes are taken")
  static let outOfScope = SyncRejection.outOfScope("the authorization does not reach this entry")
}
