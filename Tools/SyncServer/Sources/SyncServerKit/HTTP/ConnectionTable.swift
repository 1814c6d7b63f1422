internal import NIOCore

/// All connections, what each is at and since when. Beyond the limits the one that has been idle
/// for longest has to go, so that ten thousand idle ones keep nobody out.
final class ConnectionTable: Sendable {
  typealias ID = ObjectIdentifier

  /// The phase of a connection.
  enum Phase: Sendable {
    /// No request has come yet.
    case new
    /// Between two requests.
    case idle
    /// The rest of a request is to come.
    case reading
    /// A request has come whole and is being answered.
    case working
    /// A call waits for what comes.
    case waiting
    /// The answer is on its way.
    case answering
    /// The answer is there before the request was.
    case lingering

    /// Whether nothing is lost if the connection ends.
    fileprivate var isIdle: Bool { self == .new || self == .idle || self == .lingering }
  }

  private struct Row {
    let channel: any Channel
    let address: String
    var phase = Phase.new
    var since = ContinuousClock.now
    /// Told when the other end hangs up.
    var hangUp: (@Sendable () -> Void)?
    var hasHungUp = false
    /// The room of its answers that have not left yet.
    var held: [Budget.Part] = []
  }

  private struct State {
    var rows: [ID: Row] = [:]
    var byAddress: [String: Int] = [:]
  }

  private let limits: ServerLimits
  private let state = PosixMutex(State())

  init(_ limits: ServerLimits) { self.limits = limits }

  var count: Int { state.withLock { $0.rows.count } }

  /// Takes a new connection, if need be in another one's place.
  /// - Returns: false when there is no room; the caller closes it.
  func add(_ channel: any Channel) -> Bool {
    let address = channel.remoteAddress?.ipAddress ?? ""
    let (isTaken, victim) = state.withLock { state -> (Bool, (any Channel)?) in
      var victim: (any Channel)?
      if state.byAddress[address, default: 0] >= limits.connectionsPerAddress {
        victim = takeIdle(&state) { $0.address == address }
        if victim == nil { return (false, nil) }
      } else if state.rows.count >= limits.connections {
        victim = takeIdle(&state) { _ in true }
        if victim == nil { return (false, nil) }
      }
      state.rows[ObjectIdentifier(channel)] = Row(channel: channel, address: address)
      state.byAddress[address, default: 0] += 1
      return (true, victim)
    }
    victim?.close(promise: nil)
    guard isTaken else { return false }
    channel.closeFuture.whenComplete { [self] _ in
      state.withLock { remove(ObjectIdentifier(channel), from: &$0) }
    }
    return true
  }

  /// The connection that has done without a request for longest: those that never made one, or
  /// have had their answer before they did, first.
  private func takeIdle(_ state: inout State, where fits: (Row) -> Bool) -> (any Channel)? {
    let idle = state.rows.filter { $0.value.phase.isIdle && fits($0.value) }
    let oldest = idle.min { a, b in
      let (kept, other) = (a.value.phase == .idle, b.value.phase == .idle)
      return kept == other ? a.value.since < b.value.since : other
    }
    guard let oldest else { return nil }
    remove(oldest.key, from: &state)
    return oldest.value.channel
  }

  private func remove(_ id: ID, from state: inout State) {
    guard let row = state.rows.removeValue(forKey: id) else { return }
    let left = state.byAddress[row.address, default: 1] - 1
    state.byAddress[row.address] = left > 0 ? left : nil
  }

  /// Says what a connection is at now.
  func set(_ phase: Phase, _ id: ID) {
    state.withLock { state in
      state.rows[id]?.phase = phase
      state.rows[id]?.since = .now
    }
  }

  func phase(_ id: ID) -> Phase? { state.withLock { $0.rows[id]?.phase } }

  /// Keeps the room of an answer until it has left, or its connection ends.
  func hold(_ room: Budget.Part, _ id: ID) { state.withLock { $0.rows[id]?.held.append(room) } }

  /// An answer has left.
  func answered(_ id: ID, now phase: Phase) {
    set(phase, id)
    state.withLock { $0.rows[id]?.held = [] }
  }

  /// Calls `body` when the other end hangs up, also if it already has; nil ends that.
  func onHangUp(_ id: ID, _ body: (@Sendable () -> Void)?) {
    let hasHungUp = state.withLock { state in
      state.rows[id]?.hangUp = body
      return state.rows[id]?.hasHungUp ?? true
    }
    if hasHungUp { body?() }
  }

  /// The other end will say no more.
  func hungUp(_ id: ID) {
    let body = state.withLock { state in
      state.rows[id]?.hasHungUp = true
      return state.rows[id]?.hangUp
    }
    body?()
  }

  /// Closes what has been too slow.
  func closeOverdue(at now: ContinuousClock.Instant = .now) {
    let overdue = state.withLock { state in
      state.rows.values.filter { row in
        guard let time = patience(with: row.phase) else { return false }
        return row.since + time <= now
      }
    }
    for row in overdue { row.channel.close(promise: nil) }
  }

  private func patience(with phase: Phase) -> Duration? {
    switch phase {
    case .new: limits.headerTimeout
    case .idle: limits.idleTimeout
    case .reading: limits.bodyTimeout
    case .answering: limits.answerTimeout
    case .lingering: limits.lingerTimeout
    case .working, .waiting: nil
    }
  }

  /// Closes everything, whatever it is at.
  func closeAll() {
    for row in state.withLock({ Array($0.rows.values) }) { row.channel.close(promise: nil) }
  }
}
