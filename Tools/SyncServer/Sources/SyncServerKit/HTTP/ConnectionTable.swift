internal import NIOCore

/// All connections, with the phase of each and its start. Beyond the limits the one that has been
/// idle for longest is closed, so that idle connections cannot keep others out.
final class ConnectionTable: Sendable {
  typealias ID = ObjectIdentifier

  /// The phase of a connection.
  enum Phase: Sendable {
    /// No request was received yet.
    case new
    /// Between two requests.
    case idle
    /// A request is being received.
    case reading
    /// A request is complete, and its answer is made.
    case working
    /// A long poll waits.
    case waiting
    /// The answer is being sent.
    case answering
    /// The answer was sent before the request was complete.
    case lingering

    /// Whether closing the connection loses no request.
    fileprivate var isIdle: Bool { self == .new || self == .idle || self == .lingering }
  }

  private struct Row {
    let channel: any Channel
    let address: String
    var phase = Phase.new
    var since = ContinuousClock.now
    /// Called when the client closes the connection.
    var hangUp: (@Sendable () -> Void)?
    var hasHungUp = false
    /// The memory of its answers that are not sent yet.
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

  /// Adds a connection; if need be closes an idle one for it.
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

  /// Removes and returns the connection that has been idle for longest: first those without a
  /// request so far, and those that still send one that was answered.
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

  /// Sets the phase of a connection.
  func set(_ phase: Phase, _ id: ID) {
    state.withLock { state in
      state.rows[id]?.phase = phase
      state.rows[id]?.since = .now
    }
  }

  func phase(_ id: ID) -> Phase? { state.withLock { $0.rows[id]?.phase } }

  /// Counts the memory of an answer that is about to be sent, until it is sent completely or its
  /// connection ends.
  func hold(_ room: Budget.Part, _ id: ID) { state.withLock { $0.rows[id]?.held.append(room) } }

  /// Notes that an answer was sent completely.
  func answered(_ id: ID, now phase: Phase) {
    set(phase, id)
    state.withLock { $0.rows[id]?.held = [] }
  }

  /// Calls `body` when the client closes the connection, also if it already has; nil ends that.
  func onHangUp(_ id: ID, _ body: (@Sendable () -> Void)?) {
    let hasHungUp = state.withLock { state in
      state.rows[id]?.hangUp = body
      return state.rows[id]?.hasHungUp ?? true
    }
    if hasHungUp { body?() }
  }

  /// Notes that the client has closed the connection, or its sending side.
  func hungUp(_ id: ID) {
    let body = state.withLock { state in
      state.rows[id]?.hasHungUp = true
      return state.rows[id]?.hangUp
    }
    body?()
  }

  /// Closes connections that have exceeded the timeout of their phase.
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

  /// Closes all connections, whatever their phase.
  func closeAll() {
    for row in state.withLock({ Array($0.rows.values) }) { row.channel.close(promise: nil) }
  }
}
