package import TidemarkEngine

extension ErrorSweep {
  /// One fault in one run of the script.
  package struct Injection: Sendable, CustomStringConvertible {
    package var description: String
    package var plan: FaultPlan
    package var fault: Fault
    /// Whether it goes on until it is lifted.
    package var isSticky: Bool
    /// Whether the power goes off once the fault is lifted, instead of an orderly close.
    package var endsWithPowerCut = false
    /// Nothing but space is lacking: the same handle must take writes again when there is some.
    package var lacksOnlySpace = false
    /// The disk is full to its last page from this step on, until it is lifted.
    package var fullFromStep: Int?

    /// Whether the program must not notice anything.
    package var isInvisible: Bool {
      switch fault {
      case .shortTransfer: true
      default: false
      }
    }

    /// The codes that an error may have while this is the cause.
    package func explains(_ code: TidemarkError.Code) -> Bool {
      if fullFromStep != nil { return code == .noSpace }
      if code == .unknownOutcome || code == .poisoned { return true }
      switch fault {
      case .error(.ENOSPC), .error(.EDQUOT): return code == .noSpace
      case .error(.EACCES): return code == .permissionDenied
      // A backup leaves out what it cannot read, and says so.
      case .error(.EIO): return code == .inputOutput || code == .damaged
      // Pages that the disk took back read as damage until the store is opened again.
      case .syncRevertsPages: return code == .inputOutput || code == .damaged
      default: return code == .inputOutput
      }
    }
  }

  /// Everything that can go wrong in one call of a run.
  /// - Parameters:
  ///   - number: the call's number, counted from 1.
  ///   - trace: all calls of the run.
  package static func injections(
    atCall number: Int, of trace: [SimulatedCall]
  ) -> [Injection] {
    let call = trace[number - 1]
    var result: [Injection] = []
    for errno in errors(fitting: call) {
      result += errorInjections(errno, call, number, trace)
    }
    if call.operation == .sync {
      for fault in [Fault.syncLeavesPagesClean, .syncRevertsPages, .syncFailsLate] {
        for endsWithPowerCut in [false, true] {
          result.append(
            Injection(
              description: "\(fault) in \(call)",
              plan: [FaultRule(fault, .call(count(.sync, in: trace[..<number])))],
              fault: fault, isSticky: false, endsWithPowerCut: endsWithPowerCut))
        }
      }
    }
    if call.length > 1, call.operation == .read || call.operation == .write {
      let earlier = trace[..<number].count {
        ($0.operation == .read || $0.operation == .write) && $0.length > 1
      }
      result.append(
        Injection(
          description: "short transfers from \(call)",
          plan: [FaultRule(.shortTransfer, .call(earlier), times: .max)],
          fault: .shortTransfer, isSticky: true))
    }
    return result
  }

  /// A disk that is full from a step on.
  package static func fullDisk(fromStep step: Int) -> Injection {
    var injection = Injection(
      description: "a full disk from step \(step) on", plan: .none, fault: .error(.ENOSPC),
      isSticky: true)
    injection.lacksOnlySpace = true
    injection.fullFromStep = step
    injection.endsWithPowerCut = step.isMultiple(of: 2)
    return injection
  }

  private static func errorInjections(
    _ errno: SimulatedErrno, _ call: SimulatedCall, _ number: Int, _ trace: [SimulatedCall]
  ) -> [Injection] {
    let lacksSpace = errno == .ENOSPC || errno == .EDQUOT
    let name = "error \(errno.rawValue) in \(call)"
    var once = Injection(
      description: name, plan: .error(errno, atCall: number), fault: .error(errno),
      isSticky: false)
    once.lacksOnlySpace = lacksSpace && call.operation != .sync && call.operation != .write
    // A dead disk fails at everything; a full one at what asks for space.
    var operations: Set<FileSystemError.Operation>? = nil
    if lacksSpace { operations = [.allocate, .createDirectory] }
    if errno == .EACCES || errno == .EMFILE || call.operation == .sync {
      operations = [call.operation]
    }
    if lacksSpace, call.operation == .open || call.operation == .write {
      // Which opening creates a file is not for a rule to say.
      return [once]
    }
    let place = operations.map { set in
      trace[..<number].count { set.contains($0.operation) }
    }
    var sticky = once
    sticky.description = "from now on, " + name
    sticky.plan = .error(errno, atCall: place ?? number, of: operations, sticky: true)
    sticky.isSticky = true
    sticky.endsWithPowerCut = number.isMultiple(of: 2)
    once.endsWithPowerCut = !sticky.endsWithPowerCut
    return [once, sticky]
  }

  private static func count(
    _ operation: FileSystemError.Operation, in trace: some Sequence<SimulatedCall>
  ) -> Int {
    trace.count { $0.operation == operation }
  }

  /// The error numbers that a system may give for a call.
  private static func errors(fitting call: SimulatedCall) -> [SimulatedErrno] {
    switch call.operation {
    case .open:
      call.isMutating
        ? [.EIO, .ENOSPC, .EDQUOT, .EMFILE, .EACCES] : [.EIO, .EMFILE, .EACCES]
    case .createDirectory, .rename: [.EIO, .ENOSPC, .EDQUOT, .EACCES]
    case .syncDirectory: [.EIO, .EMFILE]
    case .list: [.EIO, .EMFILE, .EACCES]
    case .remove, .inspect: [.EIO, .EACCES]
    case .lock: [.EIO, .EMFILE, .EACCES]
    case .bootIdentifier, .length: [.EIO]
    case .read: [.EIO]
    case .write: [.EIO, .ENOSPC, .EDQUOT]
    case .truncate: [.EIO]
    case .allocate: [.ENOSPC, .EDQUOT, .EIO]
    case .sync: [.EIO, .ENOSPC, .EDQUOT]
    case .close: []
    }
  }
}
