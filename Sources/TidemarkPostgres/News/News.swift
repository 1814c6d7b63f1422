#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine
  internal import TidemarkSyncProtocol

  /// Tells the observers of databases that there is something new, whichever process appended it.
  ///
  /// Each process gathers what it has appended and notifies the others outside of any transaction
  /// that writes: PostgreSQL takes one lock of the whole cluster from NOTIFY to the end of a
  /// commit. A notification may be lost, so heads are polled as well.
  final class News: Sendable {
    private struct Served {
      var name: String
      let observers = Observers()
      /// The head of which observers were told last, see `heads`; 0 where none is known.
      var head: Int64 = 0
    }

    private struct State {
      /// The databases that were served here: who waits for one keeps no feed open.
      var served: [Int64: Served] = [:]
      var listener: @Sendable (String) -> Void = { _ in }
      var inboxListener: @Sendable () -> Void = {}
      var revoked: Set<Revocation> = []
      var revocationListener: @Sendable () -> Void = {}
      /// When the primary answered last, and whether it did when it was asked last.
      var lastAnswer = ContinuousClock.now
      var isAnswering = false
      /// Whether a commit waited for a synchronous standby then.
      var hasStandby = false
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
    /// The notification of a writer who asks that rows of the inbox are taken at once.
    static let inbox = "+"

    private static let notify = Statement("SELECT pg_notify('tidemark', $1::text)")
    private static let listen = Statement("LISTEN tidemark")
    private static let heads = Statement(
      "SELECT db, head # epoch FROM tidemark.tm_db WHERE db=ANY($1::bigint[])")
    /// 1 where a commit waits until it is on the disk of a synchronous standby, too. A role without
    /// further rights does not see which standbys there are; a commit waits for one all the same.
    static let commitLevel = """
      (CASE WHEN current_setting('synchronous_standby_names')<>''
        AND current_setting('synchronous_commit') IN ('on', 'remote_apply') THEN 1 ELSE 0
        END)::bigint
      """

    private static let standby = Statement("SELECT \(commitLevel)")

    init(_ settings: PostgresSettings, _ pool: Pool) throws(TidemarkError) {
      self.settings = settings
      self.pool = pool
      poll()
      guard state.withLock({ $0.isAnswering }) else {
        throw TidemarkError(.inputOutput, "PostgreSQL does not answer")
      }
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

    /// The observers of a database.
    func observers(of database: Int64, named name: String) -> Observers {
      let surplus = state.withLock { state in
        guard state.served.count >= Self.mostServed, state.served[database] == nil else {
          return [Int64: Served]()
        }
        defer { state.served = [:] }
        return state.served
      }
      for served in surplus.values { tell(served) }
      return state.withLock { state in
        let served = state.served[database] ?? Served(name: name)
        state.served[database] = served
        return served.observers
      }
    }

    func onNews(_ body: @escaping @Sendable (String) -> Void) {
      state.withLock { $0.listener = body }
    }

    /// Calls `body` when a writer asks that its rows are taken at once.
    func onInbox(_ body: @escaping @Sendable () -> Void) {
      state.withLock { $0.inboxListener = body }
    }

    func isRevoked(_ revocation: Revocation) -> Bool {
      state.withLock { $0.revoked.contains(revocation) }
    }

    func onRevocation(_ body: @escaping @Sendable () -> Void) {
      state.withLock { $0.revocationListener = body }
    }

    /// Makes all processes poll.
    func tellAll() { _ = try? pool.read([Self.notify(.text(":" + Self.many))]) }

    private func tell(_ served: Served?) {
      guard let served else { return }
      served.observers.notify()
      state.withLock { $0.listener }(served.name)
    }

    var answerAge: Duration { state.withLock { ContinuousClock.now - $0.lastAnswer } }
    var hasStandby: Bool { state.withLock { $0.hasStandby } }
    var isReady: Bool {
      state.withLock { $0.isAnswering && ($0.hasStandby || !settings.requiresStandby) }
        && answerAge < Self.polling * 2
    }

    /// This process has appended something, which ends at `head`.
    func noteAppend(to database: Int64, at head: FeedPosition) {
      tell(
        state.withLock { state in
          state.fresh.insert(database)
          state.served[database]?.head = Self.bits(head)
          return state.served[database]
        })
      state.broadcast()
    }

    /// Notes the head that the first call of a database has seen. Otherwise the next poll would
    /// take it for news, and wake whoever waits.
    func noteFirst(_ head: FeedPosition, of database: Int64) {
      state.withLock { state in
        if state.served[database]?.head == 0 { state.served[database]?.head = Self.bits(head) }
      }
    }

    private static func bits(_ head: FeedPosition) -> Int64 {
      Int64(bitPattern: head.offset ^ head.epoch)
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
          connection = Self.connected(settings)
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
        } catch {
          // Whether the primary is gone shows at once.
          connection = nil
          poll()
        }
        if .now - lastPoll > (connection == nil ? Self.pollingWithoutNews : Self.polling) {
          poll()
          lastPoll = .now
        }
      }
    }

    static func canListen(_ settings: PostgresSettings) -> Bool { connected(settings) != nil }

    private static func connected(_ settings: PostgresSettings) -> Connection? {
      guard let url = settings.directURL else { return nil }
      var direct = settings
      (direct.url, direct.isPooled) = (url, false)
      guard let connection = try? Connection(direct), (try? connection.read([listen()])) != nil
      else { return nil }
      return connection
    }

    private func tell(_ texts: [String]) {
      let others = texts.filter { !$0.hasPrefix(token) }.compactMap {
        $0.split(separator: ":", maxSplits: 1).last
      }
      if others.contains(Substring(Self.inbox)) { state.withLock { $0.inboxListener }() }
      if others.contains(Substring(Self.many)) { return poll() }
      let databases = others.flatMap { $0.split(separator: ",") }.compactMap {
        Int64($0, radix: 36)
      }
      for database in Set(databases) {
        tell(state.withLock { $0.served[database] })
      }
    }

    /// Asks for the heads of the databases that were served here, and for revocations.
    private func poll() {
      let served = state.withLock { Array($0.served.keys) }
      guard
        let rows = try? pool.read([
          Self.heads(.bigints(served)), Revocation.readAll, Self.standby(),
        ]),
        let revoked = try? Set(Revocation.all(rows[1])), var standby = rows[2].first,
        let hasStandby = try? standby.bool()
      else { return state.withLock { $0.isAnswering = false } }
      let listener = state.withLock { state in
        (state.lastAnswer, state.isAnswering, state.hasStandby) = (.now, true, hasStandby)
        defer { state.revoked = revoked }
        return state.revoked == revoked ? {} : state.revocationListener
      }
      listener()
      for var row in rows[0].all {
        guard let database = try? row.bigint(), let head = try? row.bigint() else { continue }
        tell(
          state.withLock { state in
            guard state.served[database]?.head != head else { return nil }
            state.served[database]?.head = head
            return state.served[database]
          })
      }
    }
  }
#endif
