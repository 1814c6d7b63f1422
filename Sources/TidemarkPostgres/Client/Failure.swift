#if PostgreSQL
  internal import Tidemark
  internal import TidemarkEngine

  /// A call to PostgreSQL that failed.
  struct Failure: Error {
    /// The five characters of SQLSTATE; empty where the connection was lost, or could not be made;
    /// `closed` where nobody may connect any more, `own` where PostgreSQL did not fail.
    let state: String
    let message: String
    /// Whether the commit had been sent, so that it may have been made.
    var mayBeCommitted = false

    /// A condition of an append does not hold: its statement divides by zero then, which every
    /// engine reports alike.
    var isGuard: Bool { state == "22012" }

    /// The error to throw where Tidemark itself ended the transaction; nil for a failure that
    /// PostgreSQL or the connection reported.
    private var whole: TidemarkError?

    init(state: String = "", message: String) {
      (self.state, self.message) = (state, message)
    }

    /// Ends a transaction with an error that is not PostgreSQL's.
    init(_ error: TidemarkError) {
      (state, message, whole) = ("own", error.message, error)
    }

    /// Runs what throws errors of Tidemark's own, within a transaction that they end.
    static func own<R>(_ body: () throws(TidemarkError) -> R) throws(Failure) -> R {
      do throws(TidemarkError) { return try body() } catch { throw Failure(error) }
    }

    /// Whether the transaction was not made for sure, and may be made if it is tried again. Not
    /// after waiting for a lock as long as PostgreSQL waits (55P03): others wait behind the call.
    var isPassing: Bool { ["40001", "40P01"].contains(state) }

    /// Whether a lock was waited for in vain.
    var isLockTimeout: Bool { state == "55P03" }

    /// Whether all connections of the pool are useless: PostgreSQL is no primary any more, shuts
    /// down, or has not answered although its own statement_timeout is shorter than a call's.
    var isOfServer: Bool {
      state == "25006" || state.hasPrefix("57P") || state.hasPrefix("08") || state.isEmpty
    }

    /// The error as a feed throws it.
    var error: TidemarkError {
      if let whole { return whole }
      if mayBeCommitted {
        return TidemarkError(
          .unknownOutcome, "the connection to PostgreSQL was lost at a commit: \(message)")
      }
      switch state.prefix(2) {
      case "cl": return TidemarkError(.closed, message)
      case "53" where state == "53100":
        return TidemarkError(.noSpace, "PostgreSQL's disk is full: \(message)")
      case "22", "54": return TidemarkError(.invalidArgument, "PostgreSQL refuses it: \(message)")
      case "42" where state == "42501":
        return TidemarkError(
          .inputOutput,
          "the role has too few rights: \(message); GRANT USAGE ON SCHEMA tidemark, and SELECT, "
            + "INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA tidemark")
      case "42", "23":
        return TidemarkError(
          .inputOutput,
          "PostgreSQL does not have the tables of this release: \(message) (SQLSTATE \(state))")
      default:
        let code = state.isEmpty ? "" : " (SQLSTATE \(state))"
        return TidemarkError(.inputOutput, "PostgreSQL cannot be used now: \(message)\(code)")
      }
    }
  }
#endif
