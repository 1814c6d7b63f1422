public import TidemarkEngine

extension SimulatedFileSystem {
  /// The faults that the disk injects from now on. Setting the plan restarts the counting of calls.
  public var plan: FaultPlan {
    get { machine.withLock { $0.injector.current } }
    set { machine.withLock { $0.injector.current = newValue } }
  }

  /// How many bytes the disk holds; nil for no limit.
  ///
  /// Space is used in blocks of 4096 bytes, by what was written or allocated; extending a file
  /// with `truncate` uses none. A write that does not fit is cut short, and fails with `ENOSPC`
  /// when not even its first byte fits.
  public var capacity: Int? {
    get { machine.withLock { $0.capacity } }
    set { machine.withLock { $0.capacity = newValue } }
  }

  /// How many bytes of the disk are in use, in blocks of 4096 bytes.
  public var usedBytes: Int { machine.withLock { $0.usedBytes } }

  package func freeBytes(_ path: String) -> Int? {
    machine.withLock { state in state.freePages.map { $0 * PagedBytes.pageBytes } }
  }

  /// How many files a process may have open before `EMFILE`; nil for no limit.
  public var maximumOpenFiles: Int? {
    get { machine.withLock { $0.maximumOpenFiles } }
    set { machine.withLock { $0.maximumOpenFiles = newValue } }
  }

  /// How many files this process has open now, files that it forgot to close included.
  public var openFiles: Int {
    machine.withLock { state in
      state.handles.values.count { $0.process == process }
    }
  }

  // MARK: Counters

  /// How many calls all processes made, those that failed among them, but not those on a
  /// machine without power or by a dead process.
  public var calls: Int { machine.withLock { $0.calls } }

  /// How many calls so far could change the disk. A crash test tries a power cut in each of them.
  public var mutatingCalls: Int { machine.withLock { $0.mutatingCalls } }

  /// Returns how many calls of one operation were made.
  public func calls(of operation: FileSystemError.Operation) -> Int {
    machine.withLock { $0.callsByOperation[operation, default: 0] }
  }

  /// How often each kind of fault was really injected so far, and what power cuts left.
  public var injected: InjectionCounts { machine.withLock { $0.counts } }

  /// The sum of all injected latencies in nanoseconds.
  public var simulatedNanoseconds: UInt64 { machine.withLock { $0.nanoseconds } }

  // MARK: Crash points

  /// Whether the disk is kept as a cut in each mutating call would find it.
  package var keepsCrashPoints: Bool {
    get { machine.withLock { $0.keepsCrashPoints } }
    set { machine.withLock { $0.keepsCrashPoints = newValue } }
  }

  /// The snapshots that were kept since the last time, one for every mutating call, in order.
  package func takeCrashPoints() -> [DiskSnapshot] {
    machine.withLock { state in
      defer { state.crashPoints = [] }
      return state.crashPoints.map { DiskSnapshot(image: $0, isPowered: true) }
    }
  }

  // MARK: Trace

  /// A hash of all calls so far: operations, paths, offsets, lengths, bytes and errors.
  ///
  /// Two runs with the same seed must end with the same one; if not, something in the program
  /// under test depends on more than its input.
  public var traceHash: UInt64 { machine.withLock { $0.traceHash } }

  /// Whether the disk records its calls in ``trace``. The default is false.
  public var keepsTrace: Bool {
    get { machine.withLock { $0.keepsTrace } }
    set { machine.withLock { $0.keepsTrace = newValue } }
  }

  /// The calls since ``keepsTrace`` was set, the latest 50,000 at least.
  public var trace: [SimulatedCall] { machine.withLock { $0.trace } }
}
