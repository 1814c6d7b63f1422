#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine

  /// What is new in a database, for its observers in this process.
  final class FeedNews: Sendable {
    let observers = Observers()
    let database: Int64
    fileprivate let name: String
    private let service: News
    /// The head that was told of last.
    private let head = Lock<Int64>(0)

    fileprivate init(_ database: Int64, _ name: String, _ service: News) {
      self.database = database
      self.name = name
      self.service = service
    }

    /// This process has appended something.
    func noteAppend() {
      tell()
      service.note(database)
    }

    fileprivate func tell() {
      observers.notify()
      service.tell(name)
    }

    fileprivate func note(head new: Int64) {
      let isOther = head.withLock { head in
        defer { head = new }
        return head != new
      }
      if isOther { tell() }
    }
  }

  /// Tells the observers of databases that there is something new, whichever process appended it.
  ///
  /// Each process gathers what it has appended and notifies the others outside of any transaction
  /// that writes: PostgreSQL takes one lock of the whole cluster from NOTIFY to the end of a
  /// commit. A notification may be lost, so heads are polled as well.
  final class News: Sendable {
    private struct State {
      /// The databases that were served here: who waits for one keeps no feed open.
      var served: [Int64: FeedNews] = [:]
      var listener: @Sendable (String) -> Void = { _ in }
      /// When the primary answered last.
      var lastAnswer = ContinuousClock.now
      /// The databases that this process has appended to since its last notification.
      var fresh: Set<Int64> = []
      var isClosed = false
    }

    private let settings: PostgresSettings
    private let pool: Pool
    private let state = Monitor(State())
    private let threads = Lock<[WorkerThread]>([])
    /// Tells own notifications, which say nothing new.
    private let token = String(UInt64.random(in: 0...UInt64.max), radix: 36) + ":"

    /// For how long appends are gathered before they are told of, in nanoseconds.
    private static let gathering: UInt64 = 20_000_000
    private static let polling: Duration = .seconds(5)
    private static let pollingWithoutNews: Duration = .seconds(1)
    /// How long a thread waits before it looks whether it has to end.
    private static let patience: Duration = .milliseconds(200)
    /// Most databases that a notification names, which has 8,000 bytes at most; where there are
    /// more, others poll.
    private static let most = 500
    private static let many = "*"

    private static let notify = Statement("SELECT pg_notify('tidemark', $1::text)")
    private static let listen = Statement("LISTEN tidemark")
    private static let heads = Statement(
      "SELECT db, head # epoch FROM tidemark.tm_db WHERE db=ANY($1::bigint[])")

    init(_ settings: PostgresSettings, _ pool: Pool) throws(TidemarkError) {
      self.settings = settings
      self.pool = pool
      let started = [
        try WorkerThread(name: "tm-news-out") { [self] in send() },
        try WorkerThread(name: "tm-news-in") { [self] in receive() },
      ]
      threads.withLock { $0 = started }
    }

    func close() {
      state.withLock { state in
        state.isClosed = true
        state.served = [:]
      }
      state.broadcast()
      for thread in threads.withLock({ $0 }) { thread.join() }
    }

    /// Most databases that are polled. Where there are more, all are told of a last time.
    private static let mostServed = 100_000

    /// The news of a database.
    func news(of database: Int64, named name: String) -> FeedNews {
      let surplus = state.withLock { state in
        guard state.served.count >= Self.mostServed, state.served[database] == nil else {
          return [Int64: FeedNews]()
        }
        defer { state.served = [:] }
        return state.served
      }
      for news in surplus.values { news.tell() }
      return state.withLock { state in
        if let known = state.served[database] { return known }
        let made = FeedNews(database, name, self)
        state.served[database] = made
        return made
      }
    }

    func onNews(_ body: @escaping @Sendable (String) -> Void) {
      state.withLock { $0.listener = body }
    }

    fileprivate func tell(_ name: String) { state.withLock { $0.listener }(name) }

    var isReady: Bool {
      state.withLock { ContinuousClock.now - $0.lastAnswer < Self.polling * 3 }
    }

    fileprivate func note(_ database: Int64) {
      state.withLock { state in _ = state.fresh.insert(database) }
      state.broadcast()
    }

    // MARK: Telling others

    private func send() {
      while true {
        state.wait { $0.isClosed || !$0.fresh.isEmpty }
        let isClosed = state.wait(timeoutNanoseconds: Self.gathering) { $0.isClosed }
        let fresh = state.withLock { state in
          defer { state.fresh = [] }
          return state.fresh
        }
        let names = fresh.map { String($0, radix: 36) }.joined(separator: ",")
        // Where this fails others find out by polling.
        if !fresh.isEmpty {
          _ = try? pool.read([
            Self.notify(.text(token + (fresh.count > Self.most ? Self.many : names)))
          ])
        }
        if isClosed { return }
      }
    }

    // MARK: Being told

    private func receive() {
      var connection: Connection?
      var lastPoll = ContinuousClock.now
      while !state.withLock({ $0.isClosed }) {
        if connection == nil {
          connection = connected()
          // What was told before that is lost.
          if connection != nil { poll() }
        }
        do throws(Failure) {
          if let connection {
            tell(try connection.notifications(for: Self.patience))
          } else {
            let nanoseconds = Self.patience.wholeMilliseconds * 1_000_000
            _ = state.wait(timeoutNanoseconds: nanoseconds) { $0.isClosed }
          }
        } catch { connection = nil }
        if .now - lastPoll > (connection == nil ? Self.pollingWithoutNews : Self.polling) {
          poll()
          lastPoll = .now
        }
      }
    }

    private func connected() -> Connection? {
      guard let url = settings.directURL else { return nil }
      var direct = settings
      (direct.url, direct.isPooled) = (url, false)
      guard let connection = try? Connection(direct), (try? connection.read([Self.listen()])) != nil
      else { return nil }
      return connection
    }

    private func tell(_ texts: [String]) {
      let others = texts.filter { !$0.hasPrefix(token) }.compactMap {
        $0.split(separator: ":", maxSplits: 1).last
      }
      if others.contains(Substring(Self.many)) { return poll() }
      let databases = others.flatMap { $0.split(separator: ",") }.compactMap {
        Int64($0, radix: 36)
      }
      for database in Set(databases) {
        state.withLock { $0.served[database] }?.tell()
      }
    }

    /// Asks for the heads of the databases that were served here.
    private func poll() {
      let served = state.withLock { $0.served }
      guard let rows = try? pool.read([Self.heads(.bigints(Array(served.keys)))]).first else {
        return
      }
      state.withLock { $0.lastAnswer = .now }
      for index in 0..<rows.count {
        var row = rows[index]
        guard let database = try? row.bigint(), let head = try? row.bigint() else { continue }
        served[database]?.note(head: head)
      }
    }
  }
#endif
