internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decides in the feed's order which changes of a batch apply.
///
/// A change applies if it was made upon what its key holds: upon the entry that gave it, upon
/// nothing where there is nothing, or after an own change that is the key's state still. Of the
/// others the key's policy decides. What earlier changes of the batch did counts for later ones.
struct ConflictDetector {
  /// How often as many changes are looked at as there are, when atomic groups fail.
  private static let rounds = 64

  private let feed: any Feed
  private let request: PushRequest
  private let access: SyncAccess
  private let view: FeedView
  /// The feed's time, as a commit time.
  private let feedTime: UInt64
  /// By change; nil for those that can be judged.
  private let refused: [Rejection?]

  /// By offset, values of the feed that changes may be equal to, and entries that they were made
  /// upon.
  private var values: [UInt64: [UInt8]] = [:]
  private var bases: [UInt64: FeedHead] = [:]
  /// The batch as far as it is judged.
  private var judged: JudgedBatch
  /// By key, the last entry that changes it.
  private var latest: [[UInt8]: Int] = [:]
  /// By change: how many entries there were before it, and the last of them that changes its key.
  private var before: [(entries: Int, latest: Int?)] = []
  /// Atomic groups of which a change does not apply.
  private var failed: Set<UInt64> = []

  init(
    _ request: PushRequest, feed: any Feed, view: FeedView, access: SyncAccess,
    validators: [SyncValidator]
  ) {
    self.request = request
    self.feed = feed
    self.access = access
    self.view = view
    feedTime = min(view.now, (1 << 48) - 1) << 16 | 0xffff
    let labelSets = request.changes.map { $0.kind == .put ? $0.content.labelSet : [] }
    refused = zip(request.changes, labelSets).map { change, labels in
      // The key's content does not matter here: what a verdict says must not depend on that.
      let isWithin =
        change.kind == .put
        ? access.reaches(key: change.key, labels: labels) : access.mayReach(key: change.key)
      return isWithin
        ? ChangeCheck.rejection(of: change, by: request.replica, validators) : Self.outOfScope
    }
    judged = JudgedBatch(request: request, labelSets: labelSets)
  }

  /// Judges the batch upon the feed as it is now.
  /// - Throws: `limitExceeded` when its atomic groups are too entangled.
  mutating func run() throws(TidemarkError) -> JudgedBatch {
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
      before.append((judged.entries.count, latest[request.changes[index].key]))
      let verdict = judge(index)
      if group != 0, !verdict.isTaken, !failed.contains(group) {
        // None of the group may apply: everything since its first change is judged anew.
        failed.insert(group)
        rewind(to: firsts[group] ?? index)
      } else {
        judged.verdicts.append(verdict)
      }
    }
    return judged
  }

  /// Asks the feed for what the batch is judged upon beside the states of its keys. A change is
  /// judged and put down by one such look: somebody else may write in between.
  private mutating func look() throws(TidemarkError) {
    var same: Set<UInt64> = []
    var bases: Set<UInt64> = []
    for (index, state) in view.states.enumerated() where refused[index] == nil {
      let change = request.changes[index]
      if let state, !state.isDeleted, change.kind == .put,
        state.head.valueLength == change.content.value.count,
        state.head.labels == judged.labelSets[index]
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

  /// Takes back what changes from `index` on have done.
  private mutating func rewind(to index: Int) {
    while before.count > index {
      let last = before.removeLast()
      latest[request.changes[before.count].key] = last.latest
      judged.entries.removeLast(judged.entries.count - last.entries)
    }
    judged.verdicts.removeLast(judged.verdicts.count - index)
  }

  // MARK: One change

  private mutating func judge(_ index: Int) -> Verdict {
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

  /// The state that a change finds at its key: what the batch itself has made of it, or what the
  /// feed has; nil for none.
  private func held(before index: Int) -> FeedState? {
    guard let latest = before[index].latest else { return view.states[index] }
    // An entry of the batch has no offset yet.
    let head = judged.head(
      of: judged.entries[latest], at: 0, previous: 0, received: feedTime)
    return FeedState(head: head, position: MarkRecord.planned(latest), revision: 0)
  }

  /// Whether a put gives a key what it holds.
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

  /// Whether a change was made upon what its key holds.
  private func applies(_ index: Int, upon held: FeedState?) -> Bool {
    if PlantedSyncBug.isOn(.baseIgnored) { return true }
    let change = request.changes[index]
    if let operation = held?.head.operation, operation.replica == request.replica,
      operation.sequence < change.sequence
    {
      return true
    }
    // No writer can know the place of what is only about to be appended.
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

  /// The verdict on a change that does not apply by itself; nil where the policy decides for it.
  private mutating func contest(_ index: Int, _ held: FeedState?, plans: Bool) -> Verdict? {
    let change = request.changes[index]
    // Nothing is known of what was deleted so long ago that its delete is gone, not even when.
    guard let held else { return .conflict(.beginning) }
    switch view.policies.policy(for: change.key) {
    case .detect: return .conflict(held.position)
    case .lastWriterWins:
      let time = min(change.commitTime, feedTime)
      let isLater =
        time != held.commitTime
        ? time > held.commitTime : held.head.operation.replica < request.replica
      if isLater { return nil }
      if plans, change.kind == .put {
        judged.entries.append(JudgedBatch.Entry(change: index, kind: .loses))
      }
      return .lost(held.position)
    }
  }

  /// Puts a change down as one that applies.
  private mutating func plan(_ index: Int, upon held: FeedState?) -> Verdict {
    let entry = judged.entries.count
    var planned = JudgedBatch.Entry(change: index, kind: .applies(upon: 0))
    if let held {
      let revision = held.isDeleted ? 0 : held.revision
      planned.kind = .applies(upon: before[index].latest == nil ? revision : nil)
      let head = held.head
      planned.former = FormerLabels(
        after: head.attributes.former ?? FormerLabels(forgottenThrough: head.offset), head.labels,
        at: head.offset, next: judged.labelSets[index])
    }
    judged.entries.append(planned)
    latest[request.changes[index].key] = entry
    return .applied(MarkRecord.planned(entry))
  }

  static let outOfScope = Rejection.outOfScope("the authorization does not reach this entry")
}
