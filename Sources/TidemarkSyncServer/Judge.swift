internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSyncProtocol

/// Decides in the feed's order which changes of a batch apply.
///
/// A change applies if it was made upon what its key holds: upon the entry that gave it, upon
/// nothing where there is nothing, or after an own change that is the key's state still. Of the
/// others the key's policy decides. What earlier changes of the batch did counts for later ones.
struct Judge {
  /// The key's state as the batch itself has made it, or as the feed holds it.
  private enum KeyState {
    case absent
    /// Out of line, so that tables of states are small.
    indirect case feed(FeedState)
    /// By one of the batch's entries.
    case planned(entry: Int)
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
  private var held: [FeedState?] = []
  private var values: [UInt64: [UInt8]] = [:]
  private var bases: [UInt64: FeedHead] = [:]
  /// By key, as the batch itself has made it.
  private var states: [[UInt8]: KeyState] = [:]
  private var entries: [JudgedBatch.Entry] = []
  private var rulings: [Ruling] = []
  /// By change: how many entries there were before it, and what its key held if it was applied.
  private var before: [(entries: Int, state: KeyState?)] = []
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
    let milliseconds = UInt64(clamping: max(0, feed.now.milliseconds))
    feedTime = min(milliseconds, (1 << 48) - 1) << 16 | 0xffff
    refused = request.changes.map {
      ChangeCheck.rejection(of: $0, by: request.replica, validators)
    }
    labelSets = request.changes.map { $0.kind == .put ? $0.content.labelSet : [] }
  }

  /// Judges the batch upon the feed as it is now.
  /// - Throws: `limitExceeded` when its atomic groups are too entangled.
  mutating func run() throws(TidemarkError) -> JudgedBatch {
    try look()
    states = [:]
    entries = []
    rulings = []
    before = []
    states.reserveCapacity(request.changes.count)
    entries.reserveCapacity(request.changes.count)
    rulings.reserveCapacity(request.changes.count)
    before.reserveCapacity(request.changes.count)
    failed = []
    var firsts: [UInt64: Int] = [:]
    for (index, change) in request.changes.enumerated() where change.atomicGroup != 0 {
      firsts[change.atomicGroup] = firsts[change.atomicGroup] ?? index
    }
    var work = 0
    while rulings.count < request.changes.count {
      work += 1
      guard work <= Self.rounds * (request.changes.count + 64) else {
        throw TidemarkError(
          .limitExceeded, "the batch's atomic groups are too entangled; send fewer at a time")
      }
      let index = rulings.count
      let group = request.changes[index].atomicGroup
      before.append((entries.count, nil))
      let ruling = try judge(index)
      if group != 0, !ruling.lets, !failed.contains(group) {
        // None of the group may apply: everything since its first change is judged anew.
        failed.insert(group)
        rewind(to: firsts[group] ?? index)
      } else {
        rulings.append(ruling)
      }
    }
    return JudgedBatch(
      request: request, entries: entries, rulings: rulings, policies: policies.revision)
  }

  /// Asks the feed for everything that the batch is judged upon, in three calls. A change is judged
  /// and put down by one such look: somebody else may write in between.
  private mutating func look() throws(TidemarkError) {
    let changes = request.changes.indices.filter {
      refused[$0] == nil && access.mayReach(key: request.changes[$0].key)
    }
    held = [FeedState?](repeating: nil, count: request.changes.count)
    let found = try feed.states(of: changes.map { request.changes[$0].key })
    for (index, state) in zip(changes, found) { held[index] = state }
    var same: Set<UInt64> = []
    var bases: Set<UInt64> = []
    for index in changes {
      let change = request.changes[index]
      let state = held[index]
      if let state, !state.isDeleted, change.kind == .put,
        state.valueLength == change.content.value.count, state.labels == labelSets[index]
      {
        same.insert(state.position.offset)
      }
      if state?.isDeleted ?? true, case .position(let base) = change.base, base.offset > 0 {
        bases.insert(base.offset)
      }
    }
    let (offsets, entries) = (Array(same), Array(bases))
    values = [:]
    self.bases = [:]
    if !offsets.isEmpty {
      for (offset, value) in zip(offsets, try feed.values(at: offsets)) { values[offset] = value }
    }
    if !entries.isEmpty {
      for (offset, head) in zip(entries, try feed.heads(at: entries)) { self.bases[offset] = head }
    }
  }

  /// Takes back what changes from `index` on have done.
  private mutating func rewind(to index: Int) {
    while before.count > index {
      let last = before.removeLast()
      if let state = last.state { states[request.changes[before.count].key] = state }
      entries.removeLast(entries.count - last.entries)
    }
    rulings.removeLast(rulings.count - index)
  }

  // MARK: One change

  private mutating func judge(_ index: Int) throws(TidemarkError) -> Ruling {
    if let rejection = refused[index] { return .rejected(rejection) }
    let change = request.changes[index]
    // The key's content does not matter here: what a verdict says must not depend on that.
    guard access.mayReach(key: change.key) else { return .rejected(Self.outOfScope) }
    let state = states[change.key] ?? self.held[index].map { .feed($0) } ?? .absent
    let held = described(state)
    if let held, !held.isDeleted, !access.reaches(key: change.key, labels: held.labels) {
      return .rejected(Self.outOfScope)
    }
    switch change.kind {
    case .delete:
      guard let held, !held.isDeleted else { return .duplicate(held?.place ?? .at(.beginning)) }
    case .put:
      guard access.reaches(key: change.key, labels: labelSets[index]) else {
        return .rejected(Self.outOfScope)
      }
      if let held, !held.isDeleted, isEqual(index, to: state, held) {
        return .duplicate(held.place)
      }
    }
    if change.atomicGroup != 0, failed.contains(change.atomicGroup) {
      return try applies(change, upon: held)
        ? .aborted : try contest(index, state, held, plans: false)
    }
    if try applies(change, upon: held) { return plan(index, upon: state) }
    return try contest(index, state, held, plans: true)
  }

  /// The part of a key's state that counts.
  private struct Held {
    var place: Ruling.Place
    var isDeleted: Bool
    var operation: OperationID
    var commitTime: UInt64
    var labels: [[UInt8]]
  }

  private func described(_ state: KeyState) -> Held? {
    switch state {
    case .absent: return nil
    case .feed(let state):
      return Held(
        place: .at(state.position), isDeleted: state.isDeleted, operation: state.operation,
        commitTime: state.commitTime, labels: state.labels)
    case .planned(let entry):
      let index = entries[entry].change
      let change = request.changes[index]
      return Held(
        place: .planned(entry), isDeleted: change.kind == .delete,
        operation: OperationID(replica: request.replica, sequence: change.sequence),
        commitTime: min(change.commitTime, feedTime), labels: labelSets[index])
    }
  }

  /// Whether a put gives a key what it holds.
  private func isEqual(_ index: Int, to state: KeyState, _ held: Held) -> Bool {
    let content = request.changes[index].content
    let value = content.value
    guard held.labels == labelSets[index] else { return false }
    switch state {
    case .absent: return false
    case .feed(let state):
      guard state.valueLength == value.count,
        state.attributes.attachment == content.attachment?.engineID
      else { return false }
      return values[state.position.offset] == value
    case .planned(let entry):
      let other = request.changes[entries[entry].change].content
      return other.value == value && other.attachment == content.attachment
    }
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
    if case .position(let base) = change.base, case .at(let place)? = held?.place, place == base {
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
  private mutating func contest(
    _ index: Int, _ state: KeyState, _ held: Held?, plans: Bool
  ) throws(TidemarkError) -> Ruling {
    let change = request.changes[index]
    // Nothing is known of what was deleted so long ago that its delete is gone, not even when.
    guard let held else { return .conflict(.at(.beginning)) }
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
      return plans ? plan(index, upon: state) : .aborted
    }
  }

  /// Puts a change down as one that applies.
  private mutating func plan(_ index: Int, upon state: KeyState) -> Ruling {
    let revision: JudgedBatch.Revision? =
      switch state {
      case .feed(let state): state.isDeleted ? .absent : .present(state.revision)
      case .absent: .absent
      case .planned: nil
      }
    before[index].state = state
    states[request.changes[index].key] = .planned(entry: entries.count)
    entries.append(
      JudgedBatch.Entry(
        change: index, kind: .applies(upon: revision), former: former(of: labelSets[index], state)))
    return .applied(.planned(entries.count - 1))
  }

  /// The labels that a key has had and that are not among the next ones.
  private func former(of next: [[UInt8]], _ state: KeyState) -> FormerLabels {
    switch state {
    case .absent: return FormerLabels()
    case .feed(let state):
      let known =
        state.attributes.former ?? FormerLabels(forgottenThrough: state.position.offset)
      return FormerLabels(
        after: known, state.isDeleted ? [] : state.labels, at: state.position.offset, next: next)
    case .planned(let entry):
      return FormerLabels(
        after: entries[entry].former, labelSets[entries[entry].change], at: 0, next: next)
    }
  }

  private static let outOfScope = Rejection.outOfScope(
    "the authorization does not reach this entry")
}

extension Ruling {
  /// Whether the other changes of an atomic group may apply: this one does, or has already.
  fileprivate var lets: Bool {
    switch self {
    case .applied, .duplicate: true
    default: false
    }
  }
}
