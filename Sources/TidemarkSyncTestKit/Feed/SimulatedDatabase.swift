internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync
internal import TidemarkSyncServer
internal import TidemarkTestKit

/// A database of SQL that several servers share, with what befalls one: transactions that have to
/// be repeated, connections that are lost at a commit, failovers that lose the last commits, copies
/// that are restored, an old primary that does not know that there is another.
final class SimulatedDatabase: Sendable {
  /// One life of a primary.
  final class Primary: Sendable {
    let feed: MemoryFeed
    /// Tells it from every other life, also of the same disk.
    let incarnation: UInt64
    /// The incarnation in which the epoch was drawn.
    let drawnIn: Lock<UInt64>
    /// Offsets that were given out and cannot be seen yet: only of a planted mistake.
    let hidden = Lock<ClosedRange<UInt64>?>(nil)
    /// The end of dropped deletes as it is told still: only of a planted mistake.
    let told = Lock<UInt64?>(nil)

    init(_ feed: MemoryFeed, _ incarnation: UInt64, drawnIn: UInt64) {
      self.feed = feed
      self.incarnation = incarnation
      self.drawnIn = Lock(drawnIn)
    }
  }

  private typealias Copy = (log: MemoryFeedLog, drawnIn: UInt64)

  private struct State {
    var primary: Primary
    /// The primary before, while it answers on connections of its time.
    var old: Primary?
    /// What standbys may have: the states after the last commits.
    var standbys: [Copy] = []
    var copies: [Copy] = []
    var generator: SeededGenerator
    /// The last number that was given out.
    var number: UInt64
  }

  let calls: Interleaver
  private let clock: any WallClock
  /// Whether a commit is told of only once a standby has it: then no failover loses it.
  let isSynchronous: Bool
  private let state: Lock<State>

  init(
    seed: UInt64, calls: Interleaver = Interleaver(), clock: any WallClock = ManualClock(),
    id: ReplicaID = ReplicaID(padding: [77])
  ) throws(TidemarkError) {
    self.calls = calls
    self.clock = clock
    var generator = SeededGenerator(seed: seed)
    isSynchronous = generator.chance(0.5)
    let number = generator.next() >> 8 | 1
    let feed = try MemoryFeed(MemoryFeedLog(id: id), epoch: number, clock: clock)
    state = Lock(
      State(
        primary: Primary(feed, number, drawnIn: number), generator: generator, number: number))
  }

  var primary: Primary { state.withLock { $0.primary } }

  func chance(_ part: Double) -> Bool { state.withLock { $0.generator.chance(part) } }

  /// The primary that a connection leads to.
  func primary(of connection: Primary?) -> Primary {
    state.withLock { $0.old.flatMap { $0 === connection ? $0 : nil } ?? $0.primary }
  }

  /// A number that was never used.
  func newNumber() -> UInt64 {
    state.withLock { state in
      state.number += 1
      return state.number
    }
  }

  // MARK: Accidents

  private static let mostCopies = 6

  /// Another primary takes over. Without a synchronous standby the last commits are lost, and the
  /// old one may go on for a while.
  func failOver() throws(TidemarkError) {
    let (former, random) = state.withLock { ($0.primary, $0.generator.next()) }
    if isSynchronous {
      var log = former.feed.log
      log.cutPower(keeping: random)
      return try takeOver((log, former.drawnIn.withLock { $0 }))
    }
    let copy = state.withLock { state in
      state.standbys.isEmpty ? nil : state.standbys[Int(random % UInt64(state.standbys.count))]
    }
    guard let copy else { return }
    try takeOver(copy)
    if chance(0.5) { state.withLock { $0.old = former } }
  }

  /// Nobody gets an answer of the old primary any more.
  func forgetOld() { state.withLock { $0.old = nil } }

  /// A primary has committed something.
  func noteCommit(_ primary: Primary) {
    state.withLock { state in
      guard state.primary === primary else { return }
      state.standbys.append((primary.feed.log, primary.drawnIn.withLock { $0 }))
      if state.standbys.count > Self.mostCopies { state.standbys.removeFirst() }
    }
  }

  func copy() {
    state.withLock { state in
      state.copies.append((state.primary.feed.log, state.primary.drawnIn.withLock { $0 }))
      if state.copies.count > Self.mostCopies { state.copies.removeFirst() }
    }
  }

  /// Puts an older copy in the primary's place; all since is lost.
  func restore() throws(TidemarkError) {
    let copy = state.withLock { state in
      isSynchronous || state.copies.isEmpty
        ? nil : state.copies[state.generator.int(below: state.copies.count)]
    }
    if let copy { try takeOver(copy) }
  }

  /// Puts an older log in the primary's place.
  func restore(_ log: MemoryFeedLog) throws(TidemarkError) { try takeOver((log, 0)) }

  private func takeOver(_ copy: Copy) throws(TidemarkError) {
    let feed = try MemoryFeed(copy.log, epoch: nil, clock: clock)
    let next = Primary(feed, newNumber(), drawnIn: copy.drawnIn)
    state.withLock { state in
      state.primary = next
      state.old = nil
      state.standbys = [copy]
    }
  }

  /// Drops what nobody needs, as a call that others may interrupt.
  func compact() throws(TidemarkError) {
    calls.pause()
    let primary = primary
    let isUnsaid = PlantedSyncBug.isOn(.deletesDroppedUnsaid)
    if isUnsaid {
      let said = primary.feed.log.range.truncatedThrough
      primary.told.withLock { $0 = said }
    }
    _ = try primary.feed.compact(leaseSeconds: nil) { false }
    guard isUnsaid else { return }
    for _ in 0..<8 { calls.pause() }
    primary.told.withLock { $0 = nil }
  }
}
