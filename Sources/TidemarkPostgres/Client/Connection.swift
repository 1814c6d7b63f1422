#if PostgreSQL
  internal import CPostgres
  internal import Tidemark
  internal import TidemarkEngine

  // SAFETY: the pool lends a connection to one thread at a time, and libpq needs no more.

  /// A connection to a PostgreSQL server. Statements are sent in pipelines: all at once, so that
  /// they take one round trip together.
  @safe
  final class Connection: @unchecked Sendable {
    private let handle: OpaquePointer
    private let isPooled: Bool
    private var prepared: Set<String> = []
    /// False after a failure that leaves the protocol's state open.
    private(set) var isUsable = true
    /// Whether another thread may use it: not within a transaction that was given up.
    var isIdle: Bool { unsafe isUsable && PQtransactionStatus(handle) == PQTRANS_IDLE }
    let opened = ContinuousClock.now

    /// How long a call may take.
    private let patience: Duration

    /// Connects; a host's name is looked up without a bound of time.
    init(_ settings: PostgresSettings) throws(Failure) {
      isPooled = settings.isPooled
      patience = settings.callTimeout
      var options = [
        ("application_name", "tidemark"), ("target_session_attrs", "read-write"),
        ("tcp_user_timeout", "5000"), ("client_encoding", "UTF8"), ("keepalives_idle", "10"),
        ("keepalives_interval", "5"), ("keepalives_count", "3"),
        // For each host of several, one of which may not answer.
        ("connect_timeout", String(max(2, settings.connectTimeout.wholeSeconds))),
      ]
      // A pooler refuses settings of a session.
      if !settings.isPooled {
        options.append(
          (
            "options",
            // Generic plans, since planning the lookup of a push's keys takes longer than running
            // it. No sequential scans: where one database has most of a table's rows, a plan for
            // the average database reads the whole table.
            "-c plan_cache_mode=force_generic_plan -c enable_seqscan=off -c jit=off"
              + " -c statement_timeout=8000 -c lock_timeout=3000"
              + " -c idle_in_transaction_session_timeout=5000 -c tcp_keepalives_idle=5"
              + " -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"
          ))
      }
      // What the address says counts more than what stands before it.
      options.append(("dbname", settings.url))
      let handle = unsafe Self.withCStrings(options.map(\.0)) { keywords in
        unsafe Self.withCStrings(options.map(\.1)) { values in
          unsafe PQconnectdbParams(keywords, values, 1)
        }
      }
      guard let handle = unsafe handle else { throw Failure(message: "no memory") }
      unsafe self.handle = handle
      // libpq would print them.
      unsafe PQsetNoticeProcessor(handle, { _, _ in }, nil)
      // The deinitializer runs also where this throws, as all members are set.
      guard unsafe PQstatus(handle) == CONNECTION_OK, unsafe PQsetnonblocking(handle, 1) == 0,
        unsafe PQenterPipelineMode(handle) == 1
      else { throw lost }
    }

    deinit { unsafe PQfinish(handle) }

    private static func withCStrings<R>(
      _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>?) -> R
    ) -> R {
      let bytes = texts.map { Array($0.utf8CString) }
      let all = bytes.flatMap { $0 }
      return unsafe all.withUnsafeBufferPointer { all in
        var starts: [UnsafePointer<CChar>?] = unsafe []
        var offset = 0
        for text in bytes {
          unsafe starts.append(all.baseAddress.map { unsafe $0 + offset })
          offset += text.count
        }
        unsafe starts.append(nil)
        return unsafe starts.withUnsafeBufferPointer { unsafe body($0.baseAddress) }
      }
    }

    /// What the connection says of its loss; it cannot be used any more.
    private var lost: Failure {
      isUsable = false
      let message = unsafe String(cString: PQerrorMessage(handle)).oneLine
      return Failure(message: message.isEmpty ? "the connection was lost" : message)
    }

    /// - Returns: whether there is something to read, and whether there is anything: a signal
    ///   may have ended the wait.
    private func wait(
      read: Bool, write: Bool, until end: ContinuousClock.Instant
    ) throws(Failure) -> (read: Bool, any: Bool) {
      let left = end - .now
      guard left > .zero else {
        isUsable = false
        throw Failure(message: "no answer in time")
      }
      let milliseconds = Int32(clamping: left.wholeMilliseconds)
      let ready = unsafe tidemark_pg_wait(handle, read ? 1 : 0, write ? 1 : 0, milliseconds)
      guard ready >= 0 else { throw lost }
      return (ready & 1 != 0, ready != 0)
    }

    // MARK: Statements

    /// Runs statements in one round trip, each of which sees what is committed when it begins.
    func read(_ calls: [Call]) throws(Failure) -> [Rows] { try finish(begin(calls)) }

    /// Runs statements as one transaction, in one round trip: it is committed if all succeed.
    func write(_ calls: [Call]) throws(Failure) -> [Rows] {
      do throws(Failure) {
        let results = try read([Self.begin()] + calls + [Self.commit()])
        guard results.last?.tag == "COMMIT" else {
          throw Failure(message: "PostgreSQL took the transaction back")
        }
        return Array(results.dropFirst().dropLast())
      } catch {
        var error = error
        // After a failed statement PostgreSQL skips the rest of the pipeline, COMMIT too, and the
        // transaction is still open.
        if isUsable, !isIdle { _ = try read([Self.rollback()]) }
        error.mayBeCommitted = !isUsable
        throw error
      }
    }

    private static let begin = Statement("BEGIN")
    private static let commit = Statement("COMMIT")
    private static let rollback = Statement("ROLLBACK")

    /// What the next answer belongs to: a statement is prepared, or is run.
    fileprivate enum Expected {
      case preparation(String)
      case rows
    }

    /// Statements that were sent, and whose results have not been received.
    struct Pending {
      fileprivate var expected: [Expected] = []
      fileprivate let end: ContinuousClock.Instant
    }

    /// Sends statements as ``read(_:)`` does; nothing else is sent before ``finish(_:)``.
    func begin(_ calls: [Call]) throws(Failure) -> Pending {
      var pending = Pending(end: .now + patience)
      for call in calls { try send(call, &pending.expected) }
      guard unsafe PQpipelineSync(handle) == 1 else { throw lost }
      try flush(until: pending.end)
      return pending
    }

    private func send(_ call: Call, _ expected: inout [Expected]) throws(Failure) {
      let (name, text) = (call.statement.name, call.statement.text)
      if !isPooled, !prepared.contains(name) {
        guard unsafe PQsendPrepare(handle, name, text, 0, nil) == 1 else { throw lost }
        expected.append(.preparation(name))
      }
      var all: [UInt8] = []
      var lengths: [Int32] = []
      for parameter in call.parameters {
        let start = all.count
        parameter.encode(into: &all)
        lengths.append(Int32(all.count - start))
      }
      let formats = [Int32](repeating: 1, count: lengths.count)
      let isSent = unsafe all.withUnsafeBytes { all in
        // An empty value needs an address, or it would be null.
        var next = unsafe all.baseAddress ?? UnsafeRawPointer(handle)
        var starts: [UnsafePointer<CChar>?] = unsafe []
        for (parameter, length) in zip(call.parameters, lengths) {
          let start = unsafe next.assumingMemoryBound(to: CChar.self)
          unsafe starts.append(parameter.isNull ? nil : start)
          unsafe next += Int(length)
        }
        let count = Int32(lengths.count)
        return unsafe isPooled
          ? PQsendQueryParams(handle, text, count, nil, starts, lengths, formats, 1)
          : PQsendQueryPrepared(handle, name, count, starts, lengths, formats, 1)
      }
      guard isSent == 1 else { throw lost }
      expected.append(.rows)
    }

    /// Sends what was put into the buffer. Answers are read meanwhile, or both sides could wait.
    private func flush(until end: ContinuousClock.Instant) throws(Failure) {
      while true {
        let left = unsafe PQflush(handle)
        guard left >= 0 else { throw lost }
        if left == 0 { return }
        if try wait(read: true, write: true, until: end).read {
          guard unsafe PQconsumeInput(handle) == 1 else { throw lost }
        }
      }
    }

    private func next(until end: ContinuousClock.Instant) throws(Failure) -> Rows? {
      while unsafe PQisBusy(handle) != 0 {
        if try wait(read: true, write: false, until: end).read {
          guard unsafe PQconsumeInput(handle) == 1 else { throw lost }
        }
      }
      return unsafe PQgetResult(handle).map { unsafe Rows($0) }
    }

    /// - Throws: the first failure, once all answers have come.
    func finish(_ pending: Pending) throws(Failure) -> [Rows] {
      let end = pending.end
      var results: [Rows] = []
      var failure: Failure?
      for expectation in pending.expected {
        while let rows = try next(until: end) {
          switch rows.status {
          case PGRES_COMMAND_OK, PGRES_TUPLES_OK:
            guard case .preparation(let name) = expectation else {
              results.append(rows)
              continue
            }
            prepared.insert(name)
          case PGRES_PIPELINE_ABORTED: break
          default:
            failure = failure ?? rows.failure
            guard unsafe PQstatus(handle) == CONNECTION_OK else {
              isUsable = false
              throw failure ?? lost
            }
          }
        }
      }
      guard let rows = try next(until: end), rows.status == PGRES_PIPELINE_SYNC else {
        isUsable = false
        throw failure ?? lost
      }
      if let failure { throw failure }
      return results
    }

    // MARK: News

    /// Waits for notifications.
    /// - Returns: their texts; none after the time.
    func notifications(for time: Duration) throws(Failure) -> [String] {
      let end = ContinuousClock.now + time
      while true {
        var texts: [String] = []
        while let notification = unsafe PQnotifies(handle) {
          unsafe texts.append(String(cString: notification.pointee.extra))
          unsafe PQfreemem(notification)
        }
        guard texts.isEmpty, end > .now else { return texts }
        let left = Int32(clamping: (end - .now).wholeMilliseconds)
        let ready = unsafe tidemark_pg_wait(handle, 1, 0, left)
        guard ready >= 0 else { throw lost }
        if ready & 1 != 0 {
          guard unsafe PQconsumeInput(handle) == 1 else { throw lost }
        }
      }
    }
  }
#endif
