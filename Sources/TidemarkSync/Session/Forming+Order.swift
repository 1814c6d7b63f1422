internal import Tidemark
internal import TidemarkEngine

/// The order of sending: dependencies and priorities.
extension Forming {
  /// Whether a change has to wait for others that must come first.
  /// - Parameter last: the last changes by key of the group that it goes with.
  mutating func isHeld(
    _ change: LoggedChange, with last: [[UInt8]: UInt64] = [:]
  ) throws(TidemarkError) -> Bool {
    if let from = heldKeys[change.key], from < change.sequence { return true }
    if change.attributes.atomicGroup == 0, try isPreceded(change) { return true }
    guard !change.attributes.after.isEmpty, !PlantedSyncBug.isOn(.orderIgnored) else {
      return false
    }
    // It did not go in the place of the older one; a peer may take a batch in any order.
    if change.attributes.atomicGroup == 0, taken.sends(change.key) { return true }
    for target in change.attributes.after where target < change.sequence {
      if try isOutstanding(target, with: last) {
        holdKey(of: change)
        session.setAside.wanted.insert(target)
        session.setAside.hold(change.sequence, behind: target)
        return true
      }
    }
    return false
  }

  /// Whether there is no verdict yet on an entry that others come after: it may be refused, so that
  /// they cannot go along, but for what applies together with it. What was replaced before it was
  /// sent counts as what goes in its place; what else its key was given later may itself wait for
  /// what comes after it.
  private func isOutstanding(
    _ target: UInt64, with last: [[UInt8]: UInt64]
  ) throws(TidemarkError) -> Bool {
    guard let change = try session.log.change(at: target), change.isOwn else { return false }
    if taken.sends(change.key) { return true }
    guard session.position(of: change) == nil else { return false }
    if last[change.key] ?? 0 >= target { return false }
    let newest = try newest(inPlaceOf: change)
    // A change that waits for the user is never sent once there is a newer one.
    let isReplaced =
      try session.log.newestChange(ofKey: change.key).map { $0.sequence > target } ?? true
      && progress.waiting[target].map { !$0.state.goesOn } ?? false
    if !isReplaced, session.isPending(change, in: progress) { return true }
    guard let newest, newest.isOwn, newest.sequence > target else { return false }
    return session.isPending(newest, in: progress)
  }

  // MARK: Priority

  /// Whether an entry goes only when nothing else does, or when everything may again; then it is
  /// kept until then. What others wait for cannot wait for the end.
  func canWait(_ change: LoggedChange) -> Bool {
    let priority = change.attributes.priority
    let isForEnd = priority < 0 && !session.setAside.wanted.contains(change.sequence)
    guard least.map({ priority < $0 }) ?? isForEnd else { return false }
    if priority < 0 { session.setAside.low.insert(change.sequence) }
    return true
  }

  /// Frees entries that were held behind an `after:` target on which there is a verdict now.
  func release() throws(TidemarkError) {
    for target in session.setAside.targets(outside: progress.again).sequences
    where try !isOutstanding(target, with: [:]) {
      session.setAside.release(target)
    }
  }

  /// Takes what is more urgent than what was written before it.
  mutating func takeUrgent() throws(TidemarkError) {
    // Where nothing else goes, nothing would bring nearer what lies far behind.
    try session.urgent.lookThrough(
      session, progress, most: least == nil ? UrgentEntries.lookAhead : .max)
    for change in session.urgent.inOrder where change.attributes.priority >= least ?? .min {
      if isFull { return }
      if held.contains(change.sequence) { continue }
      guard session.isPending(change, in: progress) else {
        session.urgent.remove(change)
        continue
      }
      let isWhole = change.attributes.atomicGroup != 0
      let together = isWhole ? try session.log.atomicGroup(of: change) : [change]
      if try isInFlight(together) { continue }
      guard try !isPreceded(together) else {
        // It goes in its turn; but where there is none for others, it must be found again.
        if least == nil { session.urgent.remove(change) }
        continue
      }
      let before = items.count
      try take(change)
      if items.count > before || !session.isPending(change, in: progress) {
        session.urgent.remove(change)
      }
    }
  }

  private func isInFlight(_ changes: [LoggedChange]) throws(TidemarkError) -> Bool {
    for change in changes where try session.isInFlight(change.key) { return true }
    return false
  }

  /// Whether an older change of one of the keys must go by itself, and before.
  func isPreceded(_ changes: [LoggedChange]) throws(TidemarkError) -> Bool {
    for change in changes where try isPreceded(change) { return true }
    return false
  }

  /// Only what was put off can be overtaken, and that is to be sent again. Plain changes of a key
  /// go as one, unless the later one comes after others; several of a group go together.
  private func isPreceded(_ change: LoggedChange) throws(TidemarkError) -> Bool {
    guard change.previous > 0 else { return false }
    let group = change.attributes.atomicGroup
    let goesAlone = group == 0 && !change.attributes.after.isEmpty
    let last = taken[change.key] ?? 0
    var former = try session.log.change(at: change.previous)
    while let version = former, version.sequence > last {
      if version.kind == .put || version.kind == .delete {
        guard version.isOwn, session.position(of: version) == nil else { return false }
        // A change that waits makes way, or the key is looked at for it.
        if goesAlone || version.attributes.atomicGroup != group,
          progress.waiting[version.sequence] == nil, session.isPending(version, in: progress)
        {
          session.setAside.wanted.insert(version.sequence)
          return true
        }
      }
      former = try session.log.change(at: version.previous)
    }
    return false
  }
}

extension SyncSession {
  /// So many entries are looked at for what one of them waits for.
  private static let mostTargets = 256

  /// The state of an entry that is yet to be sent, which it may wait for over several others.
  func stateOfUnsent(_ change: LoggedChange) throws(TidemarkError) -> PendingState {
    var left = change.attributes.after.filter { $0 < change.sequence }
    var seen: Set<UInt64> = []
    while let target = left.popLast(), seen.count < Self.mostTargets {
      guard seen.insert(target).inserted, let found = try log.change(at: target), found.isOwn,
        position(of: found) == nil
      else { continue }
      // A replaced change counts as what replaced it.
      let newest = try log.newestChange(ofKey: found.key) ?? found
      guard isPending(found) || isPending(newest) else { continue }
      if let reason = progress.waiting[newest.sequence], !reason.state.goesOn {
        return .blocked(by: newest.sequence)
      }
      left += newest.attributes.after.filter { $0 < newest.sequence }
    }
    return .pending
  }

  /// Whether an entry up to a sequence comes after others that wait for the user, as of the last
  /// batch.
  func isBlocked(through sequence: UInt64) -> Bool {
    held.intersection(progress.again).first.map { $0 <= sequence } ?? false
  }
}

/// Pending entries of a priority above the usual, as far as the log was looked through for them.
struct UrgentEntries {
  /// So many entries are looked at for one batch: the log may be long.
  static let lookAhead: UInt64 = 65_536
  /// So many are kept; those behind them are looked for again when these are gone.
  private let most: Int

  private var found: [UInt64: LoggedChange] = [:]
  private var lookedThrough: UInt64 = 0

  init(most: Int = 65_536) { self.most = most }

  /// The most urgent first; of the same priority, in the order of the log.
  var inOrder: [LoggedChange] {
    guard !found.isEmpty else { return [] }
    return found.values.sorted {
      ($1.attributes.priority, $0.sequence) < ($0.attributes.priority, $1.sequence)
    }
  }

  mutating func remove(_ change: LoggedChange) { found[change.sequence] = nil }

  /// Looks for more behind what was looked at before.
  mutating func lookThrough(
    _ session: SyncSession, _ progress: PeerProgress, most entries: UInt64 = .max
  ) throws(TidemarkError) {
    let (from, head) = (max(lookedThrough, progress.frontier) + 1, session.log.head)
    guard found.count < most, from <= head else { return }
    let through = from + min(head - from, entries - 1)
    var cursor = session.log.entries(from: from, through: through)
    while let entry = try cursor.next() {
      guard entry.head.attributesLength > 0 else { continue }
      let change = try LoggedChange(entry)
      guard change.isOwn, change.attributes.priority > 0,
        session.isPending(change, in: progress)
      else { continue }
      guard found.count < most else {
        lookedThrough = change.sequence - 1
        return
      }
      found[change.sequence] = change
    }
    lookedThrough = through
  }
}

/// The facts known of entries that are to be sent again or later, so that not all of them are read
/// for each batch. It is found out again when a program is started.
struct SetAside {
  /// Entries that go when nothing else does.
  var low = SequenceSet()
  /// Entries that others wait for, so that they do not.
  var wanted = SequenceSet()
  /// Entries that come after others.
  private(set) var held = SequenceSet()
  /// The same, by what they come after.
  private var behind: [UInt64: SequenceSet] = [:]
  private var targets = SequenceSet()

  /// Takes note of an entry that comes after another one.
  mutating func hold(_ sequence: UInt64, behind target: UInt64) {
    held.insert(sequence)
    targets.insert(target)
    behind[target, default: SequenceSet()].insert(sequence)
  }

  /// Entries that others come after and that are not to be sent any more themselves: it is sent, or
  /// waits.
  func targets(outside again: SequenceSet) -> SequenceSet { targets.subtracting(again) }

  /// Frees the entries that were held behind an `after:` target.
  mutating func release(_ target: UInt64) {
    targets.remove(target)
    held = held.subtracting(behind.removeValue(forKey: target) ?? SequenceSet())
  }

  /// Forgets what is not to be sent again.
  mutating func keep(_ again: SequenceSet) {
    low = low.intersection(again)
    wanted = wanted.intersection(again)
    held = held.intersection(again)
  }
}

/// Writes that apply at the peer together or not at all.
extension Forming {
  /// Takes all of an atomic group that is pending, into one batch.
  mutating func takeGroup(of change: LoggedChange) throws(TidemarkError) {
    var members: [LoggedChange] = []
    for member in try session.log.atomicGroup(of: change) where member.isOwn {
      if try !session.log.isEvicted(member) { members.append(member) }
    }
    guard members.contains(where: { $0.sequence == change.sequence }) else { return }
    // It is in this batch already.
    guard !members.contains(where: { taken[$0.key] == $0.sequence }) else { return }
    for member in members where try session.isInFlight(member.key) {
      return endBatch(before: change)
    }
    let pending = members.filter {
      $0.sequence == change.sequence || session.isPending($0, in: progress)
    }
    var sent: [LoggedChange] = []
    var lacksContent = false
    for member in pending where try session.isWithin(member) {
      sent.append(member)
      if waitsForContent(member) { lacksContent = true }
    }
    let isBroken = try isBroken(members, but: pending)
    let isRefused = pending.contains { progress.waiting[$0.sequence]?.isParked ?? false }
    if isBroken || isRefused { return try park(pending) }
    for member in pending { supersede(by: member) }
    let mustWait = try mustWait(pending)
    if lacksContent || mustWait {
      for member in pending where progress.waiting[member.sequence] == nil {
        hold(member.sequence)
        holdKey(of: member)
      }
      return
    }
    let size = sent.reduce(0) { $0 + $1.key.count + $1.valueLength + 64 }
    let fits = items.count + sent.count <= most && bytes + size <= session.limits.bytes
    guard items.isEmpty || fits else { return endBatch(before: change) }
    // Members out of scope are done with.
    for member in pending { progress.decide(member.sequence) }
    for member in sent {
      try add(member)
      // A change made after it must not be judged before it is.
      holdKey(of: member)
    }
  }

  /// Leaves a group for the next batch, and all that follows it.
  private mutating func endBatch(before change: LoggedChange) {
    isClosed = true
    progress.again.insert(change.sequence)
  }

  /// Whether one of the members that are not pending any more has come to nothing. Of several
  /// changes of a key the last counts.
  private func isBroken(
    _ members: [LoggedChange], but pending: [LoggedChange]
  ) throws(TidemarkError) -> Bool {
    let waiting = Set(pending.map(\.sequence))
    var later: Set<[UInt8]> = []
    for member in members.reversed() where later.insert(member.key).inserted {
      if waiting.contains(member.sequence) || session.position(of: member) != nil { continue }
      if try session.isWithin(member) { return true }
    }
    return false
  }

  private mutating func mustWait(_ members: [LoggedChange]) throws(TidemarkError) -> Bool {
    if try isPreceded(members) { return true }
    let last = Dictionary(members.map { ($0.key, $0.sequence) }, uniquingKeysWith: max)
    for member in members {
      if progress.waiting.entry(ofKey: member.key) != nil { return true }
      if try isHeld(member, with: last) { return true }
    }
    return false
  }

  /// One of the group will never apply, so that none does.
  private mutating func park(_ members: [LoggedChange]) throws(TidemarkError) {
    // Members on whose keys a decision is to be made come here after it.
    for member in members where progress.waiting[member.sequence] == nil {
      // The change that took its place goes by itself, and nobody could do anything about this one.
      guard try session.log.newestChange(ofKey: member.key)?.sequence == member.sequence,
        try session.isWithin(member)
      else {
        progress.decide(member.sequence)
        continue
      }
      let why = "it was to apply together with others, of which one did not"
      progress.wait(member, for: .parked(Rejection(code: Rejection.ofGroup, message: why)))
    }
  }
}
