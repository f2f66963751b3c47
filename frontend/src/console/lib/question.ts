import { groupsIn } from '../../shared/policy/signinform';
import type { Question } from '../api/types';

/** What a policy is asked about a visitor, as its form has it. */
export interface QuestionForm {
  address: string;
  user: string;
  password: string;
  /** As whom the visitor has signed in. */
  email: string;
  groups: string;
  /** As PEM, that it presents. */
  certificate: string;
  path: string;
  /** It is a webhook whose signature is right. */
  signed: boolean;
}

export const emptyQuestion = (): QuestionForm => ({
  address: '',
  user: '',
  password: '',
  email: '',
  groups: '',
  certificate: '',
  path: '',
  signed: false,
});

/** Returns the question of a form. What is left empty is not asked about. */
export function questionOf(f: QuestionForm): Partial<Question> {
  const { groups, signed, ...texts } = f;
  const asked = Object.entries(texts).filter(([, text]) => text.trim());
  const members = groupsIn(groups);
  return {
    ...Object.fromEntries(asked),
    ...(texts.email.trim() ? { email: texts.email.trim() } : {}),
    ...(members.length > 0 ? { groups: members } : {}),
    ...(signed ? { signed } : {}),
  };
}
