public import TidemarkEngine

/// Which calls on a ``SimulatedFileSystem`` go wrong, and how.
///
/// ```swift
/// disk.plan = .powerCut(atCall: 7)                            // in the 7th mutating call from now
/// disk.plan = .error(.ENOSPC, atCall: 3, of: [.allocate], sticky: true)
/// disk.plan = [FaultRule(.shortTransfer, .chance(0.2)), FaultRule(.bitFlipOnRead, .call(9))]
/// disk.plan = .none                                           // the cause is gone
/// ```
/// Calls are counted from the moment at which the plan is set. Of several rules that come due in
/// one call, the first is carried out.
public struct FaultPlan: Sendable, Hashable, ExpressibleByArrayLiteral {
  /// The rules of the plan. If several apply to one call, the first one does.
  public var rules: [FaultRule]

  /// Creates a plan from rules; without rules no call fails.
  public init(_ rules: [FaultRule] = []) { self.rules = rules }

  /// Creates a plan from an array literal of rules.
  public init(arrayLiteral elements: FaultRule...) { rules = elements }

  /// The plan under which no call fails.
  public static let none = FaultPlan()

  /// Returns a plan that cuts the power in one mutating call.
  /// - Parameter call: the number of the mutating call, counted from 1.
  public static func powerCut(atCall call: Int) -> FaultPlan {
    [FaultRule(.powerCut, .call(call), calls: .mutating)]
  }

  /// Returns a plan that kills the process in one mutating call.
  /// - Parameter call: the number of the mutating call, counted from 1.
  public static func processKill(atCall call: Int) -> FaultPlan {
    [FaultRule(.processKill, .call(call), calls: .mutating)]
  }

  /// Returns a plan in which a call fails with an error.
  /// - Parameters:
  ///   - number: the error number.
  ///   - call: the number of the call, counted from 1 among the calls of `operations`.
  ///   - operations: the operations whose calls count; nil for all.
  ///   - sticky: whether all later calls of these operations fail as well.
  public static func error(
    _ number: SimulatedErrno, atCall call: Int,
    of operations: Set<FileSystemError.Operation>? = nil,
    sticky: Bool = false
  ) -> FaultPlan {
    let calls = operations.map { FaultRule.Calls.only($0) } ?? .any
    return [FaultRule(.error(number), .call(call), calls: calls, times: sticky ? .max : 1)]
  }
}

/// A ``Fault``, with the calls in which it happens and how often.
public struct FaultRule: Sendable, Hashable {
  /// The calls to which a rule may apply. Calls for which its fault has no meaning are never among
  /// them.
  public enum Calls: Sendable, Hashable {
    /// The rule may apply to every call.
    case any
    /// The rule may apply to calls that can change the disk, syncs included.
    case mutating
    /// The rule may apply to calls of these operations.
    case only(Set<FileSystemError.Operation>)
  }

  /// Decides in which of a rule's calls its fault happens.
  public enum Trigger: Sendable, Hashable {
    /// The fault happens in the call with this number, counted from 1, and in later calls as often
    /// as ``FaultRule/times`` allows.
    case call(Int)
    /// The fault happens in each call with this probability, from 0 to 1.
    case chance(Double)
  }

  /// The fault that is injected.
  public var fault: Fault
  /// In which of the rule's calls the fault happens: by number or by chance.
  public var trigger: Trigger
  /// The calls to which the rule may apply.
  public var calls: Calls
  /// The rule only applies to calls on paths that contain this text; nil for all paths.
  public var path: String?
  /// How often the fault happens at most; `.max` for no limit.
  public var times: Int

  /// Creates a rule that injects a fault into some calls.
  /// - Parameters:
  ///   - fault: the fault to inject.
  ///   - trigger: in which calls the fault happens: by number or by chance.
  ///   - calls: the calls to which the rule may apply; by default all for which the fault has a
  ///     meaning.
  ///   - path: only calls on paths that contain this text; nil for all.
  ///   - times: how often the fault happens at most; by default once for `.call`, and without limit
  ///     for `.chance`.
  public init(
    _ fault: Fault, _ trigger: Trigger, calls: Calls = .any, path: String? = nil,
    times: Int? = nil
  ) {
    self.fault = fault
    self.trigger = trigger
    self.calls = calls
    self.path = path
    if let times {
      self.times = times
    } else if case .call = trigger {
      self.times = 1
    } else {
      self.times = .max
    }
  }

  func matches(_ call: SimulatedCall) -> Bool {
    switch calls {
    case .any: break
    case .mutating: if !call.isMutating { return false }
    case .only(let operations): if !operations.contains(call.operation) { return false }
    }
    if let path, !call.path.contains(path) { return false }
    return fault.applies(to: call)
  }
}
