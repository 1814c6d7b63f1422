internal import TidemarkEngine

/// The state of a simulated disk at one moment, synced and unsynced changes included. A snapshot is
/// cheap to take and to keep.
public struct DiskSnapshot: Sendable {
  let image: DiskImage
  let isPowered: Bool

  /// How many writes, changes of length and changes of names were not synced at the moment of the
  /// snapshot.
  public var unsyncedChanges: Int { image.unsyncedChanges }
}

extension SimulatedFileSystem {
  /// Whether the disk carries out calls. It does not after a power cut or a kill, until
  /// ``restart(keeping:)``.
  public var isRunning: Bool {
    machine.withLock { $0.isPowered && !$0.deadProcesses.contains(process) }
  }

  /// Ends the process: open files and locks are gone, everything written stays, synced or not.
  ///
  /// All calls fail until ``restart(keeping:)``; the boot identifier stays as it is.
  public func kill() {
    machine.withLock { state in
      guard state.isPowered else { return }
      state.counts.add(.processKill)
      state.kill(process)
    }
  }

  /// Cuts the power: all calls of all processes fail with `EIO` until ``restart(keeping:)``,
  /// and open files fail for ever.
  public func powerCut() {
    machine.withLock { state in
      guard state.isPowered else { return }
      state.counts.add(.powerCut)
      state.cutPower()
    }
  }

  /// Starts the machine again after a power cut, or the process after a kill; else does nothing.
  ///
  /// After a power cut the boot identifier is a new one.
  /// - Parameter survival: what is left of the changes that were not synced when the power went
  ///   off; by default the disk's seed decides for each on its own.
  public func restart(keeping survival: Survival? = nil) {
    machine.withLock { state in
      state.restart(survival)
      state.deadProcesses.remove(process)
    }
  }

  /// Returns the present state of the disk, unsynced changes included.
  public func snapshot() -> DiskSnapshot {
    machine.withLock { DiskSnapshot(image: $0.image, isPowered: $0.isPowered) }
  }

  /// Puts the disk back to an earlier state; open files and locks of all processes are gone.
  ///
  /// Counters, trace and plan go on. A snapshot that was taken without power needs a
  /// ``restart(keeping:)``.
  public func restore(_ snapshot: DiskSnapshot) {
    machine.withLock { state in
      state.image = snapshot.image
      state.isPowered = snapshot.isPowered
      state.deadProcesses = []
      state.handles = [:]
      state.locks = [:]
    }
  }

  /// Creates a disk of its own from a snapshot, as after a power cut at that moment.
  /// - Parameters:
  ///   - snapshot: the disk when the power went off.
  ///   - survival: what is left of the changes that were not synced.
  ///   - seed: decides everything that is left to chance from there on.
  ///   - clock: is advanced by the latency of calls, if given.
  public convenience init(
    _ snapshot: DiskSnapshot, keeping survival: Survival, seed: UInt64 = 0,
    clock: ManualClock? = nil
  ) {
    var state = DiskState(image: snapshot.image, seed: seed, clock: clock)
    state.cutPower()
    state.restart(survival)
    self.init(machine: Lock(state), process: 0)
  }

  /// Creates a disk of its own from a snapshot, unchanged, as after a kill at that moment: what
  /// was not synced is visible and still not synced.
  /// - Parameters:
  ///   - snapshot: the disk when the process was killed.
  ///   - seed: decides everything that is left to chance from there on.
  ///   - clock: is advanced by the latency of calls, if given.
  public convenience init(
    killedAt snapshot: DiskSnapshot, seed: UInt64 = 0, clock: ManualClock? = nil
  ) {
    let state = DiskState(image: snapshot.image, seed: seed, clock: clock)
    self.init(machine: Lock(state), process: 0)
  }
}
