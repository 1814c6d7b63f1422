internal import TidemarkEngine

/// One thing that goes wrong in a call on a ``SimulatedFileSystem``.
public enum Fault: Sendable, Hashable {
  /// The call fails with this error number and has no effect.
  case error(SimulatedErrno)
  /// The call takes effect, and then fails with this error number.
  case errorAfterEffect(SimulatedErrno)
  /// A read or write transfers fewer bytes than asked for, at least one.
  case shortTransfer
  /// `sync` fails with `EIO`; the new bytes stay readable but count as written (ext4, XFS): they
  /// are gone after a power cut, however often the file is synced, unless written again.
  case syncLeavesPagesClean
  /// `sync` fails with `EIO`; the file goes back to its durable bytes and length (Btrfs).
  case syncRevertsPages
  /// `sync` claims success though nothing became durable; the next `sync` of the file fails with
  /// `EIO` and leaves pages clean (ext4 with journaled data).
  case syncFailsLate
  /// A write looks fine, but its bytes never become durable, and the next `sync` of the file
  /// fails with `EIO`: the kernel wrote it in the background and failed.
  case writebackFailure
  /// One bit of what a read returns is wrong, this once.
  case bitFlipOnRead
  /// One bit of what a write stores is wrong from then on.
  case bitFlipOnWrite
  /// A read returns bytes from another place of the file.
  case misdirectedRead
  /// A write lands in another place of the file.
  case misdirectedWrite
  /// A read returns the bytes that stood there before the last `sync` of the file.
  case staleRead
  /// A write claims success and leaves the old bytes: a block that stays stale.
  case lostWrite
  /// The call takes this many nanoseconds of simulated time.
  case latency(nanoseconds: UInt64)
  /// The power goes off during the call; see ``SimulatedFileSystem/powerCut()``.
  case powerCut
  /// The process is killed during the call, which may have taken effect, in part too.
  case processKill
}

extension Fault {
  /// The kind under which ``SimulatedFileSystem/injected`` counts the fault.
  public var kind: InjectedKind {
    switch self {
    case .error: .error
    case .errorAfterEffect: .errorAfterEffect
    case .shortTransfer: .shortTransfer
    case .syncLeavesPagesClean: .syncLeavesPagesClean
    case .syncRevertsPages: .syncRevertsPages
    case .syncFailsLate: .syncFailsLate
    case .writebackFailure: .writebackFailure
    case .bitFlipOnRead: .bitFlipOnRead
    case .bitFlipOnWrite: .bitFlipOnWrite
    case .misdirectedRead: .misdirectedRead
    case .misdirectedWrite: .misdirectedWrite
    case .staleRead: .staleRead
    case .lostWrite: .lostWrite
    case .latency: .latency
    case .powerCut: .powerCut
    case .processKill: .processKill
    }
  }

  /// Whether it means anything for a call.
  func applies(to call: SimulatedCall) -> Bool {
    switch self {
    case .error, .errorAfterEffect, .latency, .powerCut, .processKill: true
    case .shortTransfer:
      (call.operation == .read || call.operation == .write) && call.length > 1
    case .syncLeavesPagesClean, .syncRevertsPages, .syncFailsLate: call.operation == .sync
    case .bitFlipOnRead, .misdirectedRead, .staleRead:
      call.operation == .read && call.length > 0
    case .writebackFailure, .bitFlipOnWrite, .misdirectedWrite, .lostWrite:
      call.operation == .write && call.length > 0
    }
  }
}

/// The kinds of faults and of power cut results that ``SimulatedFileSystem/injected`` counts.
public enum InjectedKind: String, Sendable, Hashable, CaseIterable {
  /// Faults of a call as a whole, as the cases of ``Fault`` with the same names.
  case error, errorAfterEffect, shortTransfer
  /// Failures of `sync` and of writing in the background, as the cases of ``Fault`` with the same
  /// names.
  case syncLeavesPagesClean, syncRevertsPages, syncFailsLate, writebackFailure
  /// Wrong bytes of a read or write, as the cases of ``Fault`` with the same names.
  case bitFlipOnRead, bitFlipOnWrite, misdirectedRead, misdirectedWrite, staleRead, lostWrite
  /// Slow calls and ends of the process or machine, as the cases of ``Fault`` with the same names.
  case latency, powerCut, processKill
  /// A call failed, or wrote only a part, because the capacity was reached.
  case diskFull
  /// An unsynced sector was lost in a power cut.
  case sectorLost
  /// Only a part of an unsynced sector survived a power cut.
  case sectorTorn
  /// An unsynced sector survived a power cut whole.
  case sectorKept
  /// A sector that was lost in a power cut shows old bytes of other data.
  case sectorStale
  /// An unsynced change of a file's length was lost in a power cut, or survived it.
  case lengthLost, lengthKept
  /// An unsynced new or removed name was lost in a power cut, or survived it.
  case nameLost, nameKept
}
