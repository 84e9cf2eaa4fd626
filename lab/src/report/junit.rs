//! The report as JUnit XML, which continuous integration shows as tests.
//!
//! | kvlab | JUnit |
//! |---|---|
//! | scenario | test suite |
//! | client of a scenario | class name `scenario.client` |
//! | that a client ran to its end | test case `run`, in real time with the length of its run |
//! | finding | test case |
//! | pass | passed |
//! | fail | `<failure>`, its type `proof` or `measurement` |
//! | void | `<skipped>`: nothing was claimed, so nothing is wrong |
//! | a measurement that fails in a void run | `<skipped>` too, as in the verdict |
//! | a client that could not be run | `<error>` in its `run`; what came after it is missing |
//!
//! Under virtual time no times are given, so that two runs write the same bytes.

use std::time::Duration;

use quick_junit::{NonSuccessKind, SerializeError, TestCase, TestCaseStatus, TestSuite};

use super::text::describe;
use super::{PartReport, Report};
use crate::runner::Tier;
use crate::runner::suite::SuiteError;
use crate::verdict::{Finding, Kind, Verdict};

/// A scenario that could not be run.
#[derive(Debug)]
pub struct Broken {
    /// Its name.
    pub scenario: String,
    /// Why.
    pub error: SuiteError,
}

/// The document.
///
/// # Errors
/// Never in practice: every text has a form in XML.
pub fn render(reports: &[Report], broken: Option<&Broken>) -> Result<String, SerializeError> {
    let mut document = quick_junit::Report::new("kvlab");
    document.add_test_suites(reports.iter().map(suite));
    document.add_test_suites(broken.map(broken_suite));
    document.to_string()
}

fn suite(report: &Report) -> TestSuite {
    let mut suite = TestSuite::new(report.name.as_str());
    for part in &report.parts {
        let class = class(&report.name, &part.name);
        suite.add_test_case(run(part, &class, report.tier));
        let void = part.judgement.verdict == Verdict::Void;
        for finding in &part.judgement.findings {
            let mut case = TestCase::new(finding.name, status(finding, void));
            case.set_classname(class.as_str());
            suite.add_test_case(case);
        }
    }
    if report.tier == Tier::Real {
        suite.set_time(report.parts.iter().map(elapsed).sum());
    }
    suite
}

fn broken_suite(broken: &Broken) -> TestSuite {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
    status.set_message(broken.error.source.to_string());
    let mut case = TestCase::new("run", status);
    case.set_classname(class(&broken.scenario, &broken.error.part));
    let mut suite = TestSuite::new(broken.scenario.as_str());
    suite.add_test_case(case);
    suite
}

/// Dots part the levels of a class name, so a name has none.
fn class(scenario: &str, part: &str) -> String {
    let level = |name: &str| name.replace('.', "\u{2024}");
    format!("{}.{}", level(scenario), level(part))
}

fn run(part: &PartReport, class: &str, tier: Tier) -> TestCase {
    let mut case = TestCase::new("run", TestCaseStatus::success());
    case.set_classname(class);
    if tier == Tier::Real {
        case.set_time(elapsed(part));
    }
    let mut text = describe(&part.load);
    for notice in &part.notices {
        text += &format!("\n{notice}");
    }
    case.set_system_out(text);
    case
}

fn elapsed(part: &PartReport) -> Duration {
    Duration::from_nanos(part.elapsed_ns)
}

fn status(finding: &Finding, void: bool) -> TestCaseStatus {
    let mut status = match finding.verdict {
        Verdict::Pass => return TestCaseStatus::success(),
        Verdict::Void => TestCaseStatus::skipped(),
        Verdict::Fail if void && finding.kind == Kind::Measurement => TestCaseStatus::skipped(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
    };
    status.set_message(finding.text.as_str());
    status.set_type(match finding.kind {
        Kind::Proof => "proof",
        Kind::Measurement => "measurement",
        Kind::Validity => "validity",
    });
    if !finding.examples.is_empty() {
        status.set_description(finding.examples.join("\n"));
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::PartError;

    fn xml(finding: &Finding, void: bool) -> String {
        let mut document = quick_junit::Report::new("kvlab");
        let mut suite = TestSuite::new("s");
        suite.add_test_case(TestCase::new(finding.name, status(finding, void)));
        document.add_test_suite(suite);
        document.to_string().unwrap()
    }

    #[test]
    fn a_failure_holds_the_text_and_the_cases_escaped() {
        let finding = Finding::proof("rows", false, "3 < 4 & \"none\"")
            .with_examples(["127.0.0.1:1/0#7 \u{7} <x>".to_owned()]);
        let text = xml(&finding, true);
        assert!(text.contains("failures=\"1\""), "{text}");
        assert!(
            text.contains("<failure message=\"3 &lt; 4 &amp; &quot;none&quot;\" type=\"proof\">"),
            "{text}"
        );
        // The bell is no character of XML.
        assert!(text.contains("127.0.0.1:1/0#7  &lt;x&gt;"), "{text}");
    }

    #[test]
    fn void_is_skipped_and_so_is_a_measurement_in_a_void_run() {
        let steal = Finding::validity("steal", false, "5 % stolen");
        let service = Finding::measurement("service", false, "off");
        for (finding, void, attribute) in [
            (&steal, true, "skipped=\"1\""),
            (&service, true, "skipped=\"1\""),
            (&service, false, "failures=\"1\""),
        ] {
            let text = xml(finding, void);
            assert!(text.contains(attribute), "{text}");
        }
    }

    #[test]
    fn a_client_that_could_not_run_is_an_error() {
        let error = SuiteError {
            part: "v1.2".to_owned(),
            source: Box::new(PartError::NoPort),
        };
        let broken = Broken {
            scenario: "s".to_owned(),
            error,
        };
        let text = render(&[], Some(&broken)).unwrap();
        assert!(text.contains("errors=\"1\""), "{text}");
        assert!(text.contains("classname=\"s.v1\u{2024}2\""), "{text}");
        assert!(
            text.contains("<error message=\"the server has no port"),
            "{text}"
        );
    }
}
