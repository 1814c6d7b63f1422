internal import Synchronization

/// The calls that wait and the event streams: how many there are, and how all of them end.
final class Waiters: Sendable {
  /// One that waits. It is woken when something has come and ended when it is to wait no more.
  final class Waiter: Sendable {
    let caller: String
    /// Whose changes wake it. The database may be closed meanwhile: then nobody changes it.
    fileprivate let database: DatabaseName
    /// Tells a replica's stream in a database from others, where the replica says who it is.
    fileprivate let name: String?
    private let stream: AsyncStream<Void>
    private let source: AsyncStream<Void>.Continuation
    private let hasNews = Mutex(true)

    fileprivate init(_ caller: String, _ database: DatabaseName, name: String?) {
      self.caller = caller
      self.database = database
      self.name = name
      (stream, source) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Says that something has come.
    func wake() {
      hasNews.withLock { $0 = true }
      source.yield()
    }

    /// Wakes it though nothing has come.
    func beat() { source.yield() }

    /// Whether something has come since this was last asked.
    func takeNews() -> Bool {
      hasNews.withLock { hasNews in
        defer { hasNews = false }
        return hasNews
      }
    }

    func end() { source.finish() }

    /// One element for each time that it was woken; ends when waiting does. For one
    /// reader.
    var wakes: AsyncStream<Void> { stream }
  }

  private struct State {
    var waiters: [ObjectIdentifier: Waiter] = [:]
    var byCaller: [String: Int] = [:]
    var byDatabase: [DatabaseName: Set<ObjectIdentifier>] = [:]
    var isEnding = false
  }

  private let most: Int
  private let mostPerCaller: Int
  private let state = Mutex(State())

  init(most: Int, perCaller: Int) {
    self.most = most
    mostPerCaller = perCaller
  }

  /// Whether the server is about to end.
  var isEnding: Bool { state.withLock { $0.isEnding } }

  /// One more that waits for a database; it takes the place of an earlier one of the same name.
  /// - Returns: nil when there are too many, or the server is about to end.
  func add(_ caller: String, _ database: DatabaseName, name: String? = nil) -> Waiter? {
    let (waiter, former) = state.withLock { state -> (Waiter?, Waiter?) in
      guard !state.isEnding else { return (nil, nil) }
      let former = name.flatMap { name in state.waiters.values.first { $0.name == name } }
      if let former { Self.remove(former, from: &state) }
      guard state.waiters.count < most, state.byCaller[caller, default: 0] < mostPerCaller else {
        return (nil, former)
      }
      let waiter = Waiter(caller, database, name: name)
      state.waiters[ObjectIdentifier(waiter)] = waiter
      state.byDatabase[database, default: []].insert(ObjectIdentifier(waiter))
      state.byCaller[caller, default: 0] += 1
      return (waiter, former)
    }
    former?.end()
    return waiter
  }

  func remove(_ waiter: Waiter) { state.withLock { Self.remove(waiter, from: &$0) } }

  private static func remove(_ waiter: Waiter, from state: inout State) {
    let id = ObjectIdentifier(waiter)
    guard state.waiters.removeValue(forKey: id) != nil else { return }
    state.byDatabase[waiter.database]?.remove(id)
    if state.byDatabase[waiter.database]?.isEmpty == true {
      state.byDatabase[waiter.database] = nil
    }
    let left = state.byCaller[waiter.caller, default: 1] - 1
    state.byCaller[waiter.caller] = left > 0 ? left : nil
  }

  /// Wakes those that wait for a database: something was appended to it.
  func wake(_ database: DatabaseName) {
    let waiters = state.withLock { state in
      (state.byDatabase[database] ?? []).compactMap { state.waiters[$0] }
    }
    for waiter in waiters { waiter.wake() }
  }

  /// Ends the waiting of some callers, by their ids.
  func end(where isMeant: (String) -> Bool) {
    let waiters = state.withLock { state in
      state.waiters.values.filter { isMeant($0.caller) }
    }
    for waiter in waiters { waiter.end() }
  }

  /// Ends all waiting, and lets nobody begin.
  func endAll() {
    let waiters = state.withLock { state in
      state.isEnding = true
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.end() }
  }
}
