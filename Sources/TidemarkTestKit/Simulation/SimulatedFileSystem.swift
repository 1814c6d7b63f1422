public import TidemarkEngine

/// A disk in memory on which the power can be cut at any call, and on which anything can fail.
///
/// It keeps two views of everything, bytes, lengths and names apart: what the process sees, and
/// what is durable. `sync` of a file makes its bytes and its length durable; a new or removed
/// name is durable only after `syncDirectory`. On a power cut every un-synced sector of 512
/// bytes, length and name is kept, lost or torn, each on its own, as ``Survival`` says.
///
/// ```swift
/// let disk = SimulatedFileSystem(seed: 42)
/// disk.plan = .powerCut(atCall: 17)          // in the middle of the 17th mutating call
/// runYourProgram(on: disk)                   // gets errors from there on
/// let crash = disk.snapshot()
/// for survival in Survival.sweep(seed: 42) { // what may be left of what was not synced
///   let afterwards = SimulatedFileSystem(crash, keeping: survival)
///   checkThatNothingPromisedIsLost(on: afterwards)
/// }
/// ```
/// The other ways to hurt a program are ``kill()`` (the process dies, the kernel lives on),
/// ``plan`` (errors, short transfers, failing syncs, wrong bytes), ``capacity`` (the disk fills
/// up) and ``flipBit(_:inFile:)`` with its relatives (damage at rest). ``injected`` counts what
/// really happened, so that a test can insist that its faults were not in vain.
///
/// Everything depends on the seed and the order of the calls only: the same seed gives the same
/// ``traceHash``. Calls from several threads are carried out one at a time.
public final class SimulatedFileSystem: FileSystem, Sendable {
  let machine: Lock<DiskState>
  let process: Int

  /// Creates an empty simulated disk.
  /// - Parameters:
  ///   - seed: decides everything that happens by chance.
  ///   - clock: advances by the latency of calls; nil for no clock.
  public init(seed: UInt64 = 0, clock: ManualClock? = nil) {
    machine = Lock(DiskState(image: DiskImage(identity: seed), seed: seed, clock: clock))
    process = 0
  }

  init(machine: Lock<DiskState>, process: Int) {
    self.machine = machine
    self.process = process
  }

  /// The same machine as another process sees it: with locks and open files of its own, and a
  /// life of its own as far as ``kill()`` goes.
  public func anotherProcess() -> SimulatedFileSystem {
    let process = machine.withLock { $0.nextIdentifier() }
    return SimulatedFileSystem(machine: machine, process: process)
  }

  func perform<R: Sendable>(
    _ call: SimulatedCall, _ body: (inout DiskState, Fault?) throws(SimulatedErrno) -> R
  ) throws(FileSystemError) -> R {
    try machine.withLock { (state) throws(FileSystemError) -> R in
      try state.perform(call, process: process, body)
    }
  }

  // MARK: FileSystem

  package func open(_ path: String, _ mode: FileMode) throws(FileSystemError) -> any File {
    let call = SimulatedCall(.open, path, isMutating: mode == .create)
    let id = try perform(call) { (state, _) throws(SimulatedErrno) -> Int in
      try state.open(path, mode, process: process)
    }
    return SimulatedFile(system: self, path: path, id: id)
  }

  package func createDirectory(_ path: String) throws(FileSystemError) {
    let call = SimulatedCall(.createDirectory, path, isMutating: true)
    try perform(call) { (state, _) throws(SimulatedErrno) in
      try state.image.createDirectory(at: path)
    }
  }

  package func syncDirectory(_ path: String) throws(FileSystemError) {
    let call = SimulatedCall(.syncDirectory, path, isMutating: true)
    try perform(call) { (state, fault) throws(SimulatedErrno) in
      try state.syncDirectory(path, fault)
    }
  }

  package func list(_ path: String) throws(FileSystemError) -> [String] {
    try perform(SimulatedCall(.list, path)) { (state, _) throws(SimulatedErrno) in
      try state.list(path)
    }
  }

  package func remove(_ path: String) throws(FileSystemError) {
    let call = SimulatedCall(.remove, path, isMutating: true)
    try perform(call) { (state, _) throws(SimulatedErrno) in
      try state.image.remove(at: path)
    }
  }

  package func rename(_ path: String, to newPath: String) throws(FileSystemError) {
    let call = SimulatedCall(.rename, path, isMutating: true)
    try perform(call) { (state, _) throws(SimulatedErrno) in
      try state.image.rename(path, to: newPath)
      state.sweep()
    }
  }

  package func kind(_ path: String) throws(FileSystemError) -> FileKind? {
    try perform(SimulatedCall(.inspect, path)) { (state, _) throws(SimulatedErrno) in
      try state.kind(path)
    }
  }

  package func lock(_ path: String, owner: [UInt8]) throws(FileSystemError) -> FileLockOutcome {
    let call = SimulatedCall(.lock, path, length: owner.count, isMutating: true)
    let result = try perform(call) { (state, _) throws(SimulatedErrno) in
      try state.lock(path, owner: owner, process: process)
    }
    switch result {
    case .success(let id): return .acquired(SimulatedLock(system: self, path: path, id: id))
    case .failure(let held): return .held(owner: held.owner)
    }
  }

  package func bootIdentifier() throws(FileSystemError) -> [UInt8] {
    try perform(SimulatedCall(.bootIdentifier, "")) { (state, _) throws(SimulatedErrno) in
      state.image.bootIdentifier
    }
  }
}
