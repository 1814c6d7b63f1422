internal import TidemarkEngine

/// A simulated machine: its disk, what its processes have open, and what is to go wrong.
struct DiskState: Sendable {
  /// The older half of a longer trace is dropped.
  private static let traceLimit = 100_000

  /// An open file.
  struct Handle: Sendable {
    var node: Int
    var path: String
    var isWritable: Bool
    var process: Int
  }

  /// A lock that somebody has.
  struct HeldLock: Sendable {
    var id: Int
    var process: Int
  }

  var image: DiskImage
  var isPowered = true
  var deadProcesses: Set<Int> = []
  var handles: [Int: Handle] = [:]
  var locks: [Int: HeldLock] = [:]
  private var nextID = 1

  var injector = FaultInjector()
  var generator: SeededGenerator
  var counts = InjectionCounts()
  var capacity: Int?
  var maximumOpenFiles: Int?

  var calls = 0
  var mutatingCalls = 0
  var callsByOperation: [FileSystemError.Operation: Int] = [:]
  var nanoseconds: UInt64 = 0
  var traceHash: UInt64 = 0
  var keepsTrace = false
  var trace: [SimulatedCall] = []
  var keepsCrashPoints = false
  var crashPoints: [DiskImage] = []
  let clock: ManualClock?

  init(image: DiskImage, seed: UInt64, clock: ManualClock?) {
    self.image = image
    generator = SeededGenerator(seed: seed)
    self.clock = clock
  }

  /// An identifier for a handle or a lock, never used before.
  mutating func nextIdentifier() -> Int {
    nextID += 1
    return nextID
  }

  // MARK: Calls

  /// Counts a call, decides what goes wrong in it, and carries it out.
  mutating func perform<R>(
    _ call: SimulatedCall, process: Int,
    _ body: (inout DiskState, Fault?) throws(SimulatedErrno) -> R
  ) throws(FileSystemError) -> R {
    note(call)
    guard isPowered, !deadProcesses.contains(process) else { throw failed(call, .EIO) }
    calls += 1
    if call.isMutating { mutatingCalls += 1 }
    callsByOperation[call.operation, default: 0] += 1

    let fault = injector.fault(for: call, &generator)
    switch fault {
    case .error(let number):
      inject(number, .error)
      throw failed(call, number)
    case .latency(let extra):
      counts.add(.latency)
      wait(extra)
    case .processKill where call.operation != .write && generator.chance(0.5):
      counts.add(.processKill)
      kill(process)
      throw failed(call, .EIO)
    default: break
    }

    // A cut during a sync is one before it: what it leaves is up to the survival.
    let isSync = call.operation == .sync || call.operation == .syncDirectory
    if keepsCrashPoints, isSync { crashPoints.append(image) }
    let result: Result<R, SimulatedErrno>
    do throws(SimulatedErrno) { result = .success(try body(&self, fault)) } catch {
      result = .failure(error)
    }

    if keepsCrashPoints, call.isMutating, !isSync { crashPoints.append(image) }

    switch fault {
    case .errorAfterEffect(let number):
      inject(number, .errorAfterEffect)
      throw failed(call, number)
    case .powerCut:
      counts.add(.powerCut)
      cutPower()
      throw failed(call, .EIO)
    case .processKill:
      counts.add(.processKill)
      kill(process)
      throw failed(call, .EIO)
    default: break
    }
    switch result {
    case .success(let value): return value
    case .failure(let number): throw failed(call, number)
    }
  }

  private mutating func note(_ call: SimulatedCall) {
    mix(call.fingerprint)
    guard keepsTrace else { return }
    if trace.count == Self.traceLimit { trace.removeFirst(Self.traceLimit / 2) }
    trace.append(call)
  }

  /// Takes a number into the hash of the trace.
  mutating func mix(_ number: UInt64) {
    traceHash = (traceHash ^ number) &* 0x9e37_79b9_7f4a_7c15
    traceHash ^= traceHash >> 32
  }

  private mutating func failed(_ call: SimulatedCall, _ number: SimulatedErrno) -> FileSystemError {
    mix(UInt64(UInt32(bitPattern: number.rawValue)))
    return FileSystemError(call.operation, path: call.path, number: number.rawValue)
  }

  private mutating func inject(_ number: SimulatedErrno, _ kind: InjectedKind) {
    counts.add(kind)
    counts.add(number)
  }

  mutating func wait(_ duration: UInt64) {
    let (sum, over) = nanoseconds.addingReportingOverflow(duration)
    nanoseconds = over ? .max : sum
    clock?.advance(by: .nanoseconds(Int64(clamping: duration)))
  }

  // MARK: Power and processes

  mutating func cutPower() {
    isPowered = false
    handles = [:]
    locks = [:]
  }

  mutating func kill(_ process: Int) {
    deadProcesses.insert(process)
    handles = handles.filter { $0.value.process != process }
    locks = locks.filter { $0.value.process != process }
    sweep()
  }

  mutating func restart(_ survival: Survival?) {
    if !isPowered {
      let chosen = survival ?? .random(seed: generator.next())
      counts = counts + image.reboot(chosen)
      isPowered = true
      deadProcesses = []
    }
  }

  mutating func sweep() { image.sweep(keeping: Set(handles.values.map(\.node))) }

  // MARK: Space

  /// Bytes of the disk in use, by the view of the processes.
  var usedBytes: Int {
    let open = Set(handles.values.map(\.node))
    let named = Set(image.directories.values.flatMap(\.visible.values))
    var pages = 0
    for (node, file) in image.files where named.contains(node) || open.contains(node) {
      pages += file.visible.usedPages
    }
    return pages * PagedBytes.pageBytes
  }

  /// How many more pages can be used; nil when there is no limit.
  var freePages: Int? {
    capacity.map { max(0, ($0 - usedBytes) / PagedBytes.pageBytes) }
  }
}
